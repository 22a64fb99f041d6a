#pragma once

#include <cstdint>

#include "workers/backend/device/library_handle.cuh"
#include "workers/backend/progress.hpp"
#include "workers/thermal/kernels/three_phonon/fc3_transform.hpp"
#include "workers/thermal/kernels/three_phonon/find_processes_3ph_cuda.cuh"

namespace quasi::thermal::cuda3ph {

/// Rows first ≤ row < last; both are multiples of the number of branches.
struct RowRange {
  std::int64_t first;
  std::int64_t last;
};

/// Squared matrix elements of three phonons by the factorised algorithm of Fc3Transform, on the
/// device in use (docs/theory/thermal.md 11.4). The Fourier sums are products of cuBLAS.
class FactorisedElements3phCuda {
 public:
  /// Aim for the size of the work arrays of weigh_processes.
  static constexpr std::int64_t kWorkBytes = std::int64_t{1} << 30;

  FactorisedElements3phCuda() = default;
  /// Uploads the force constants.
  /// @param problem, cublas  must outlive the object
  FactorisedElements3phCuda(const ThreePhononProblem& problem, const cuda::CublasHandle& cublas);

  /// Computes the weights of the processes of some rows.
  /// @param processes  the lists of these rows, one after the other
  /// @throws Cancelled between two batches of points
  void weigh_processes(const DeviceProblem3& device_problem, const ProcessOffsets3& offsets,
                       const RowRange& rows, Process3* processes, Progress& progress) const;

 private:
  /// Values that the work arrays hold for one point, all branches together.
  struct PointSizes {
    std::int64_t matrices;  ///< nb³: one matrix for every branch
    std::int64_t box, stage1, stage2, a;
  };
  /// The work arrays for some points at once.
  template <typename Real>
  struct Batch {
    std::int64_t points;                         ///< at most
    cuda::DeviceBuffer<Complex<double>> box;     ///< [points][box][s][nb][nb]
    cuda::DeviceBuffer<Complex<double>> stage1;  ///< [points][c][b][N1][s][nb][nb]
    cuda::DeviceBuffer<Complex<double>> stage2;  ///< [points][c][N2][N1][s][nb][nb]
    cuda::DeviceBuffer<Complex<float>> rounded;  ///< stage2; with mixed precision
    cuda::DeviceBuffer<Complex<Real>> a;         ///< [points][n_q][s][nb][nb] A_λ(p)
  };
  /// The points of a batch that are in work.
  struct Points {
    std::int64_t first;  ///< index in ThreePhononProblem::rows
    std::int64_t count;
  };

  PointSizes point_sizes() const;
  template <typename Real>
  Batch<Real> make_batch(std::int64_t n_points) const;
  template <typename Real>
  void weigh_in_batches(const DeviceProblem3& device_problem, const ProcessOffsets3& offsets,
                        const RowRange& rows, Process3* processes, Progress& progress) const;
  template <typename Real>
  void contract_first_slot(const DeviceProblem3& device_problem, const Points& points,
                           const Batch<Real>& batch) const;
  template <typename Real>
  void sum_first_two_axes(const Points& points, const Batch<Real>& batch) const;
  template <typename Real>
  void sum_last_axis(const Points& points, const Batch<Real>& batch) const;
  /// @param longest  processes of the longest row of the points
  template <typename Real>
  void contract_last_slots(const DeviceProblem3& device_problem, const RowLists3& lists,
                           std::int64_t n_rows, std::int64_t longest,
                           const Batch<Real>& batch) const;
  template <typename Real>
  const Complex<Real>* eigenvectors(const DeviceProblem3& device_problem) const;

  const ThreePhononProblem* problem_ = nullptr;
  const cuda::CublasHandle* cublas_ = nullptr;
  int nb_ = 0;
  Fc3Transform transform_;
  cuda::DeviceBuffer<double> tensor_;
  cuda::DeviceBuffer<Complex<double>> axis_phase_[3];
  cuda::DeviceBuffer<Complex<float>> e32_, phase32_;  ///< with mixed precision
  // Blocks sorted by their target, so that one thread adds all blocks of a target.
  std::int64_t n_groups_ = 0;
  cuda::DeviceBuffer<int> group_first_, group_target_, sorted_block_;
  cuda::DeviceBuffer<int> first_component_, third_cell_, cells_;
};

}  // namespace quasi::thermal::cuda3ph
