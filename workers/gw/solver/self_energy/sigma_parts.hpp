#pragma once

#include <cstdint>
#include <vector>

#include "workers/gw/solver/self_energy/sigma.hpp"

namespace quasi::gw {

/// A part of Σ, diagonal or matrix, at one outer k.
struct PartAtK : SigmaPart {
  std::size_t k = 0;  ///< position in SigmaOptions::kpoints
};

/// Lists all parts of Σ over `n_q` irreducible q: by q, then k, then blocks of bands. Neighbours in
/// the list share the screening of their q.
/// @param in_all  number of parts wanted, where q, k and bands allow so many. It does not depend on
/// the number of devices, so that bits do not either.
std::vector<PartAtK> parts_of_sigma(std::size_t n_q, const SigmaOptions& options,
                                    std::int64_t in_all);

}  // namespace quasi::gw
