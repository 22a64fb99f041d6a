#pragma once

#include <cstdint>
#include <vector>

#include "workers/gw/solver/self_energy/sigma.hpp"

namespace quasi::gw {

/// A part of Σ, diagonal or matrix, at the k of one position in SigmaOptions::kpoints.
struct PartAtK : SigmaPart {
  std::size_t k = 0;
};

/// All parts of Σ over `n_q` irreducible q: by q, then k, then blocks of bands, so that what a q
/// prepares serves its neighbours in the list.
/// @param in_all  parts wanted, where q, k and bands allow so many; whatever the number of devices,
/// so that bits do not depend on it
std::vector<PartAtK> parts_of_sigma(std::size_t n_q, const SigmaOptions& options,
                                    std::int64_t in_all);

}  // namespace quasi::gw
