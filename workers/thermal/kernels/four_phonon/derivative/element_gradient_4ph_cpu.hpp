#pragma once

#include <cstdint>
#include <vector>

#include "workers/thermal/kernels/four_phonon/process_finder_4ph_cpu.hpp"
#include "workers/thermal/model/problem_4ph.hpp"

namespace quasi::thermal {

/// Begin here: differentiates sums over four-phonon processes by the constants of their plan, on
/// the CPU. It is the transpose of the three steps of ContractionPlan4ph, process by process
/// (docs/theory/thermal.md 16). The problem must outlive it.
class ElementGradient4phCpu {
 public:
  explicit ElementGradient4phCpu(const Problem4ph& problem);

  /// Returns the derivative of Σ_rows by_row Σ_p m W|V|² by ContractionPlan4ph::tensor,
  /// [n_blocks][81]. The inner sum is that of SumLayout4ph, normal and Umklapp. The bits do not
  /// depend on the number of threads.
  /// @param temperature  number in Problem4ph::temperatures_k
  /// @param by_row       [n_rows], equal for all modes of a degenerate set
  std::vector<double> gradient(int temperature, const std::vector<double>& by_row);

 private:
  class Worker;
  std::vector<double> first_slot_gradient() const;

  Tables4ph tables_;
  ProcessFinder4phCpu finder_;
  std::int32_t n_totals_;
  std::vector<Complex<double>> contracted_;     ///< C of step 1
  std::vector<Complex<double>> by_contracted_;  ///< its derivative, of the same shape
};

}  // namespace quasi::thermal
