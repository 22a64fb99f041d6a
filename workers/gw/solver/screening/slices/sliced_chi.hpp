#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "workers/gw/solver/screening/polarizability/polarizability.hpp"
#include "workers/gw/solver/step_context.hpp"

// The folder workers/gw/solver/screening/slices calculates χ(0) and ε⁻¹ in slices, which are
// ranges of rows. No device has to hold a whole matrix (docs/theory/gw.md 4.3). Begin here:
// sliced_chi() sums χ, and sliced_inversion.hpp inverts ε.
namespace quasi::gw {

/// Describes the sum of the static polarizability χ(0) at one wave vector q in slices.
struct SlicedSum {
  const Polarizability& chi;
  const EpsilonOptions& options;  ///< options with column_slices ≥ 1
  std::string prefix;             ///< start of the names of finished slices in the checkpoint
  /// Receives progress after each slice. A whole χ counts chi.portions(), and each slice counts
  /// its share of them.
  std::function<void(std::int64_t portions)> report;
};

/// Calculates χ_GG'(0) of one q in host memory, 1/(Ry Bohr³), before its completion by symmetry.
/// Each device takes some slices at a time and sums all pairs of bands for them. A finished slice
/// goes into the checkpoint. A slice that the checkpoint already holds is not calculated again.
/// The bits do not depend on the number of devices. All ranks call this function together.
/// @return the packed upper triangle of χ(0), which is the same on all ranks
std::unique_ptr<PartialChi> sliced_chi(const SlicedSum& sum, const StepContext& context);

}  // namespace quasi::gw
