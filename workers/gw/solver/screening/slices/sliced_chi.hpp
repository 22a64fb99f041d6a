#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "workers/gw/solver/screening/polarizability/polarizability.hpp"
#include "workers/gw/solver/step_context.hpp"

// The folder workers/gw/solver/screening/slices calculates χ(0) and ε⁻¹ in slices, which no
// device has to hold whole (docs/theory/gw.md 4.3). Begin here: sliced_chi() sums χ, and
// sliced_inversion.hpp inverts ε.
namespace quasi::gw {

/// Describes the sum of χ(0) at one q in slices.
struct SlicedSum {
  const Polarizability& chi;
  const EpsilonOptions& options;  ///< column_slices ≥ 1
  std::string prefix;             ///< of the names of finished slices in the checkpoint
  /// Called after each slice with the share of the portions that it stands for.
  std::function<void(std::int64_t portions)> report;
};

/// Calculates χ(0) over the wedge in host memory. Every device sums all pairs of bands for its own
/// slices, some slices at a time. Finished slices go into the checkpoint, and those that it holds
/// are not calculated. The number of slices does not depend on the number of devices, so that bits
/// do not either. Collective.
std::unique_ptr<PartialChi> sliced_chi(const SlicedSum& sum, const StepContext& context);

}  // namespace quasi::gw
