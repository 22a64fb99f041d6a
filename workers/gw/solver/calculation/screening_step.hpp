#pragma once

#include <future>
#include <memory>
#include <vector>

#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/screening/grouped_screening.hpp"

namespace quasi::gw {

/// Checks ε⁻¹ by a few threads of the host while the devices work.
class ScreeningChecks {
 public:
  /// Takes half of the threads that the caller has. A device that starts the checks later has
  /// only a share of them.
  explicit ScreeningChecks(const std::vector<DielectricMatrix>& epsilon);
  /// To be called after W is made, because both are bound by the memory of the host.
  void start();
  std::vector<SelfCheck> take();
  /// Valid after take().
  double seconds() const { return seconds_; }

 private:
  const std::vector<DielectricMatrix>& epsilon_;
  int threads_;
  double seconds_ = 0.0;
  std::future<std::vector<SelfCheck>> checks_;
};

/// Calculates ε⁻¹ of a job. If blocks of random vectors give error bars, χ is summed by groups
/// of bands. The first group has the protected bands, and each block is a group. With windows of
/// splines a last group has all vectors with the energies of windows at their nodes.
class ScreeningStep {
 public:
  /// Sets ε⁻¹ of all q in `run`, from files or calculated.
  ScreeningStep(const Deck& deck, const StepContext& context, Calculation& run);
  /// Returns χ by groups; null: it is not summed by groups.
  GroupedScreening* groups() const { return groups_.get(); }
  /// Returns ε⁻¹ at the samples of q → 0; empty without sub-sampling.
  const std::vector<DielectricMatrix>& samples() const { return samples_; }

 private:
  void sum_by_groups(const Deck& deck, const StepContext& context, Calculation& run);
  EpsilonProfile profile_;
  std::unique_ptr<GroupedScreening> groups_;
  std::vector<DielectricMatrix> samples_;
};

}  // namespace quasi::gw
