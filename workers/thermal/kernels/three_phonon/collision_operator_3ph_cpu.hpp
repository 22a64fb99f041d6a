#pragma once

#include <cstdint>
#include <vector>

#include "workers/thermal/kernels/three_phonon/process_finder_3ph_cpu.hpp"

namespace quasi::thermal {

/// The list of the processes of all rows on the host and the collision operator that it makes
/// (docs/theory/thermal.md 8).
class CollisionOperator3phCpu {
 public:
  CollisionOperator3phCpu() = default;
  /// Allocates the list.
  /// @param problem, finder  must outlive the operator
  /// @param first_process    [n_rows + 1] where the processes of each row begin
  CollisionOperator3phCpu(const ThreePhononProblem& problem, const ProcessFinder3phCpu& finder,
                          std::vector<std::int64_t> first_process)
      : problem_(&problem),
        finder_(&finder),
        first_process_(std::move(first_process)),
        processes_(static_cast<std::size_t>(first_process_.back())) {}

  /// The place in the list where the processes of a row are to be written.
  Process3* processes_of(std::int64_t row) { return processes_.data() + first_process_[row]; }

  /// See ThreePhononSums::apply_collision.
  std::vector<double> apply(double temperature_k, OccupationForm form,
                            const std::vector<double>& f);
  /// See ThreePhononSums::row_rates.
  std::vector<double> row_rates(double temperature_k, OccupationForm form);

 private:
  /// Views of the occupations at a temperature, which are computed if they are not known yet.
  CollisionOccupations3 occupations(double temperature_k, OccupationForm form);

  const ThreePhononProblem* problem_ = nullptr;
  const ProcessFinder3phCpu* finder_ = nullptr;
  std::vector<std::int64_t> first_process_;
  std::vector<Process3> processes_;
  double tabulated_k_ = 0.0;  ///< the temperature of n_ and s_; 0: none
  std::vector<double> n_;     ///< [n_modes]
  std::vector<double> s_;     ///< [n_modes] √(n(n+1))
};

}  // namespace quasi::thermal
