#pragma once

#include <cstdint>

#include "workers/gw/model/coulomb_options.hpp"
#include "workers/gw/model/mean_field.hpp"
#include "workers/gw/solver/calculation/plan.hpp"

namespace quasi::gw {

/// Returns the digest of a job's mean field and of every option that affects ε or Σ. Pieces of two
/// jobs may be mixed in a checkpoint only if their digests are equal. @param outer  wavefunctions
/// of the outer states; null: those of `field`
std::uint64_t digest_of(const MeanField& field, const Plan& plan, const CoulombOptions& coulomb,
                        const Wavefunctions* outer);

}  // namespace quasi::gw
