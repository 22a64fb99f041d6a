#pragma once

#include <array>
#include <cstdint>

#include "workers/backend/device/device_buffer.cuh"
#include "workers/gw/kernels/gw_kernels.hpp"
#include "workers/gw/kernels/pair_products/fft_plan_cuda.cuh"
#include "workers/gw/kernels/staged_copy.cuh"

namespace quasi::gw::cuda {

/// Pair products by batched FFT, in device memory: M_ln(G) = 1/N_r Σ_r u*_l(r) u_n(r) e^{+iGr}.
///
/// Wavefunctions of both sides stay on the real-space box; each batch forms u*_l u_n for one l and
/// many n, transforms in place and gathers the sphere.
class PairProducts {
 public:
  void set_box(std::array<int, 3> box);
  std::int64_t n_r() const { return n_r_; }
  std::int64_t n_g() const { return static_cast<std::int64_t>(sphere_.size()); }

  void load_bands(Side side, View<const Cplx, 2> coefficients,
                  View<const std::int32_t, 1> box_index, StagedCopy& staging, cudaStream_t stream);
  void load_sphere(View<const std::int32_t, 1> box_index, View<const Cplx, 1> factor);
  /// @param products  [left.size()][right.size()][n_g], device
  void run(BandRange left, BandRange right, double2* products, cudaStream_t stream);

  /// √|w| M of one left band and a batch of right ones.
  struct WeightedRows {
    std::int64_t left = 0;
    BandRange right;
    bool real = false;              ///< M is real: two products share a transform, rows hold double
    const double* root = nullptr;   ///< √|w|, [right.size()]
    const double2* head = nullptr;  ///< M of the first plane waves, [n_heads] of [right.size()],
                                    ///< `head_stride` apart; or null
    std::int64_t n_heads = 0, head_stride = 0;
    void* rows = nullptr;  ///< [right.size()][n_g] of double2 or double
  };
  void run_weighted(const WeightedRows& wanted, cudaStream_t stream);
  /// Largest right.size() of run_weighted.
  std::int64_t largest_rows(std::int64_t n_right, bool real) const;
  /// True if every coefficient of both sides and every factor of the sphere is real.
  bool real() const { return real_side_[0] && real_side_[1] && real_factor_; }

 private:
  const FftPlanCuda& plan(int batch);
  double2* work_of(std::int64_t boxes);

  std::array<int, 3> box_{};
  std::int64_t n_r_ = 0;
  quasi::cuda::DeviceBuffer<double2> waves_[2];  ///< [n_bands][n_r]
  quasi::cuda::DeviceBuffer<std::int32_t> sphere_;
  quasi::cuda::DeviceBuffer<double2> factor_;  ///< 1/N_r times the caller's
  quasi::cuda::DeviceBuffer<double2> work_;    ///< [batch][n_r]
  FftPlanCuda plans_[2];                       ///< of full batches and of the rest
  int plan_batch_[2] = {0, 0};
  bool real_side_[2] = {false, false}, real_factor_ = true;
};

}  // namespace quasi::gw::cuda
