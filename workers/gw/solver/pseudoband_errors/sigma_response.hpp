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
#include "workers/gw/solver/step_times.hpp"

namespace quasi::gw {

/// Holds the poles of W at one irreducible q and changes of them. Elements with imaginary poles are
/// left out.
struct ChangingPoles {
  ScreeningAtQ at;  ///< screening at q, whose ε⁻¹ may be empty
  PlasmonPoleModel model;
  std::vector<PoleChange> changes;
  /// Holds the model on the device that took it first. Other devices copy it from there.
  struct FirstDevice {
    std::mutex mutex;
    std::weak_ptr<const LoadedPoleModel> model;  ///< guarded by the mutex
  };
  std::shared_ptr<FirstDevice> first_device = std::make_shared<FirstDevice>();
};

/// Returns the changes of B = ½ I v̄ (Bohr³ Ry) and of τ = 1/ω̃ (1/Ry) from one model to
/// another of the same q. The change of τ is bounded where a pole falls towards 0
/// (docs/theory/gw.md 9.3).
PoleChange change_of(const PlasmonPoleModel& own, const PlasmonPoleModel& changed);

/// Holds the change of the diagonal Σ at E_l and of its slope dΣ/dE for the outer states l of one
/// k-point and spin, [n_l].
struct SigmaChange {
  std::vector<double> total_ry;
  std::vector<double> slope;  ///< empty if no slope is calculated

  /// Adds a multiple of another change of the same shape.
  void add(double factor, const SigmaChange& other);
};
/// A change of Σ has one entry for each outer k-point and spin, in the order of self_energy().
using SigmaChanges = std::vector<SigmaChange>;

/// Returns a change of Σ that is zero for every k, spin and outer state of the job.
SigmaChanges no_change(const MeanField& field, const SigmaOptions& options);

/// Holds the poles of one q and some of their changes on one device.
struct PolesOnDevice {
  std::size_t iq = 0;
  std::int64_t first_row = 0;                        ///< first row G of the model in `changes`
  std::shared_ptr<const LoadedPoleModel> model;      ///< null: none yet
  std::unique_ptr<const LoadedPoleChanges> changes;  ///< null: none yet
  /// Brings the poles of the irreducible q number `of_q` to the device, unless they are there.
  void take(const ChangingPoles& poles, std::size_t of_q, const PoleRules& rules,
            GwKernels& kernels);
  /// Brings some rows of these poles to the device, in place of the rows that it holds.
  void take_rows(const ChangingPoles& poles, std::size_t of_q, const ElementRows& rows,
                 const PoleRules& rules, GwKernels& kernels);
};
/// Holds the objects that several sums share. Poles stay on the devices from one sum to the next.
struct ResponseContext {
  const StepContext& step;
  std::map<const GwKernels*, PolesOnDevice>& loaded;  ///< an entry for every device
  StepTimes* times = nullptr;                         ///< gets the seconds of each step
};

/// Returns the number of inner bands whose products take a quarter of the memory budget. It does
/// not depend on the memory that changes take.
/// @param n_g  plane waves of W
std::int64_t bands_at_a_time(std::int64_t n_g, const OuterProducts& outer,
                             const SigmaOptions& options);

/// Returns the bytes of a pole model on a device that loads it for changes
/// (PoleSumKernels::load_for_changes).
/// @param real  the model is Hermitian with real strengths
std::int64_t bytes_of_model(std::int64_t n_g, bool real);
/// Describes the model whose rows are cut into ranges.
struct RangeShape {
  std::int64_t n_g = 0, n_changes = 0;
  bool folded = false;  ///< the model is Hermitian
  bool real = false;    ///< its strengths are real, too
};
/// Returns the number of ranges of row_ranges().
std::int64_t count_of_ranges(const RangeShape& shape, const SigmaOptions& options);
/// Returns the ranges of rows of a model that are summed one after another. There is one range if
/// all changes of all rows fit a device beside the model.
std::vector<ElementRows> row_ranges(const ChangingPoles& poles, const SigmaOptions& options);

/// Describes the segments of inner bands whose Σ is summed separately.
struct BandSegments {
  std::vector<std::int64_t> end;  ///< ascending; the last is SigmaOptions::bands
  /// Second energies of empty bands, Ry, [n_bands]. A band whose value is NaN has none. The list
  /// is empty if no band has one.
  std::vector<double> other_ry;
  int of_complement = 0;           ///< number of equal parts of the complement's vectors
  bool screened_exchange = false;  ///< SX − X of occupied bands is summed separately
};
/// Holds real parts of the diagonal Σ of the model itself at one k-point and spin, Ry. A sum over
/// bands to first order in changes gives them, too.
struct SigmaOfModel {
  std::vector<double> sums;           ///< OwnSum, [n_segments][kOwnSums][n_l]
  std::vector<double> of_complement;  ///< closed sums of parts of the complement, [n_parts][n_l]
  std::vector<double> known;          ///< known closed sum over all states, [n_l]

  /// Returns one sum of a segment for the outer state number l. It is in Ry, or without unit for
  /// slopes.
  double sum(std::size_t segment, OwnSum which, std::size_t l) const {
    const std::size_t n_l = known.size();
    return sums[(segment * kOwnSums + static_cast<std::size_t>(which)) * n_l + l];
  }
};
/// Holds the result of sigma_responses().
struct SigmaResponses {
  std::vector<SigmaChanges> changes;  ///< [n_changes]
  std::vector<SigmaOfModel> own;      ///< sums at each k and spin, in the order of SigmaChanges
};
/// Calculates Σ to first order in every change of the poles (docs/theory/gw.md 9.3), and Σ of the
/// poles themselves. All changes share one sum over the inner bands, whose parts go to the devices
/// as in self_energy(). The changes include the closed sum of SigmaOptions::closed_sum_x_ry.
/// @param poles  by irreducible q, each with `n_changes` changes
/// @param n_changes  number of changes
SigmaResponses sigma_responses(const MeanField& field, const std::vector<ChangingPoles>& poles,
                               std::size_t n_changes, const SigmaOptions& options,
                               const BandSegments& segments, const ResponseContext& context);

}  // namespace quasi::gw
