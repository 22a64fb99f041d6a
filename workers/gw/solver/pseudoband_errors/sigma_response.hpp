#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "workers/gw/kernels/pole_sums/pole_change_kernels.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"
#include "workers/gw/solver/self_energy/zone_sum/outer_products.hpp"
#include "workers/gw/solver/step_context.hpp"

namespace quasi::gw {

/// Poles of W at one irreducible q, and changes of them. Elements with imaginary poles are left
/// out.
struct ChangingPoles {
  ScreeningAtQ at;  ///< its ε⁻¹ may be empty
  PlasmonPoleModel model;
  std::vector<PoleChange> changes;
  /// The model on the device that took it first. Others copy it from there.
  struct FirstDevice {
    std::mutex mutex;
    std::weak_ptr<const LoadedPoleModel> model;  ///< guarded by the mutex
  };
  std::shared_ptr<FirstDevice> first_device = std::make_shared<FirstDevice>();
};

/// Returns the change of B = ½ I v̄ and of τ = 1/ω̃ from one model to another of the same q.
/// That of τ is bounded where a pole falls towards 0 (docs/theory/gw.md 9.3).
PoleChange change_of(const PlasmonPoleModel& own, const PlasmonPoleModel& changed);

/// Change of the diagonal Σ at E_l and of its slope, [n_l] each.
struct SigmaChange {
  std::vector<double> total_ry;
  std::vector<double> slope;  ///< empty: not wanted

  /// Adds a multiple of another change of the same shape.
  void add(double factor, const SigmaChange& other);
};
/// Changes at all outer k and spins, in the order of self_energy().
using SigmaChanges = std::vector<SigmaChange>;

/// Returns a change of Σ that is zero for every k, spin and outer state of the job.
SigmaChanges no_change(const MeanField& field, const SigmaOptions& options);

/// Poles of one q on one device, and some of their changes.
struct PolesOnDevice {
  std::size_t iq = 0;
  std::int64_t first_row = 0;                        ///< of `changes`
  std::shared_ptr<const LoadedPoleModel> model;      ///< null: none yet
  std::unique_ptr<const LoadedPoleChanges> changes;  ///< null: none yet
  /// Brings the poles of a q to the device, unless they are there.
  void take(const ChangingPoles& poles, std::size_t of_q, const PoleRules& rules,
            GwKernels& kernels);
};
/// The objects that the sums share. Poles stay on the devices from one sum to the next.
struct ResponseContext {
  const StepContext& step;
  std::map<const GwKernels*, PolesOnDevice>& loaded;  ///< an entry for every device
};

/// Returns the number of inner bands whose products take a quarter of the budget. It does not
/// depend on the memory that changes take.
std::int64_t bands_at_a_time(std::int64_t n_g, const OuterProducts& outer,
                             const SigmaOptions& options);

/// Returns the ranges of rows of a model that are summed at a time: one range if all changes of the
/// rows fit a device beside the model.
std::vector<ElementRows> row_ranges(const ChangingPoles& poles, const SigmaOptions& options);

/// Segments of inner bands whose Σ is told apart.
struct BandSegments {
  std::vector<std::int64_t> end;  ///< ascending; the last is SigmaOptions::bands
  /// Energies that empty bands may have instead, [n_bands]; not a number: none. Empty: no band has
  /// one.
  std::vector<double> other_ry;
  int of_complement = 0;           ///< number of equal parts of the complement's vectors
  bool screened_exchange = false;  ///< SX − X of occupied bands is told apart
};
/// Real part of the diagonal Σ of the model itself at one k and spin. A sum over bands to first
/// order in changes contains it.
struct SigmaOfModel {
  std::vector<double> sums;           ///< OwnSum, [n_segments][kOwnSums][n_l]
  std::vector<double> of_complement;  ///< closed sums of parts of the complement, [n_parts][n_l]
  std::vector<double> known;          ///< known closed sum over all states, [n_l]

  double sum(std::size_t segment, OwnSum which, std::size_t l) const {
    const std::size_t n_l = known.size();
    return sums[(segment * kOwnSums + static_cast<std::size_t>(which)) * n_l + l];
  }
};
struct SigmaResponses {
  std::vector<SigmaChanges> changes;  ///< one for each change
  std::vector<SigmaOfModel> own;      ///< by k and spin, as in SigmaChanges
};
/// Calculates Σ to first order in every change of the poles (docs/theory/gw.md 9.3), and Σ of the
/// poles themselves. All changes share one sum over the inner bands, whose parts go to the devices
/// as those of self_energy() do. The closed sum of SigmaOptions::closed_sum_x_ry is included in the
/// changes.
/// @param poles  by irreducible q, each with `n_changes` changes
SigmaResponses sigma_responses(const MeanField& field, const std::vector<ChangingPoles>& poles,
                               std::size_t n_changes, const SigmaOptions& options,
                               const BandSegments& segments, const ResponseContext& context);

}  // namespace quasi::gw
