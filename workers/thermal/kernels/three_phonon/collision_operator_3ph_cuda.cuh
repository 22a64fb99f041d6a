#pragma once

#include <cstdint>
#include <vector>

#include "workers/thermal/kernels/three_phonon/find_processes_3ph_cuda.cuh"

namespace quasi::thermal::cuda3ph {

/// The list of the processes of all rows on the device in use and the collision operator that it
/// makes (docs/theory/thermal.md 8).
class CollisionOperator3phCuda {
 public:
  CollisionOperator3phCuda() = default;
  /// @param problem, device_problem, offsets  must outlive the operator
  /// @param processes  the list of all rows, with weights
  CollisionOperator3phCuda(const ThreePhononProblem& problem, const DeviceProblem3& device_problem,
                           const ProcessOffsets3& offsets, cuda::DeviceBuffer<Process3> processes)
      : problem_(&problem),
        device_problem_(&device_problem),
        offsets_(&offsets),
        processes_(std::move(processes)) {}

  /// See ThreePhononSums::apply_collision.
  std::vector<double> apply(double temperature_k, OccupationForm form,
                            const std::vector<double>& f);
  /// See ThreePhononSums::row_rates.
  std::vector<double> row_rates(double temperature_k, OccupationForm form);

 private:
  /// Computes the occupations at a temperature if they are not known yet.
  void tabulate(double temperature_k);
  /// @param f           [n_modes][3] on the device, or null: the rates of the rows
  /// @param components  3, or 1 without f
  /// @return [n_rows][components]
  std::vector<double> collide(double temperature_k, OccupationForm form, const double* f,
                              int components);

  const ThreePhononProblem* problem_ = nullptr;
  const DeviceProblem3* device_problem_ = nullptr;
  const ProcessOffsets3* offsets_ = nullptr;
  cuda::DeviceBuffer<Process3> processes_;
  double tabulated_k_ = 0.0;          ///< the temperature of n_ and s_; 0: none
  cuda::DeviceBuffer<double> n_, s_;  ///< [n_modes] n and √(n(n+1))
  cuda::DeviceBuffer<double> f_, out_;
};

}  // namespace quasi::thermal::cuda3ph
