#pragma once

#include <utility>

#include "workers/backend/device/library_handle.cuh"

namespace quasi::gw::cuda {

using quasi::cuda::check;

/// Owns a cuFFT plan. Its handle is an integer whose value 0 is valid, so a flag marks an empty
/// owner. See docs/theory/gw.md 3 for the equations.
class FftPlanCuda {
 public:
  FftPlanCuda() = default;
  /// Plans batched complex transforms of a box, in place, consecutive in memory.
  FftPlanCuda(const int (&box)[3], int batch) {
    int dimensions[3] = {box[0], box[1], box[2]};
    check(quasi::cuda::late::cufftPlanMany(&plan_, 3, dimensions, nullptr, 1, 0, nullptr, 1, 0,
                                           CUFFT_Z2Z, batch),
          "planning FFTs");
    valid_ = true;
  }
  ~FftPlanCuda() {
    if (valid_) quasi::cuda::late::cufftDestroy(plan_);
  }
  FftPlanCuda(FftPlanCuda&& other) noexcept
      : plan_(other.plan_), valid_(std::exchange(other.valid_, false)) {}
  FftPlanCuda& operator=(FftPlanCuda&& other) noexcept {
    std::swap(plan_, other.plan_);
    std::swap(valid_, other.valid_);
    return *this;
  }
  /// Computes Σ_G c(G) e^{±iGr}, with + for CUFFT_INVERSE and − for CUFFT_FORWARD.
  void run(double2* data, cudaStream_t stream, int direction = CUFFT_INVERSE) const {
    check(quasi::cuda::late::cufftSetStream(plan_, stream), "giving cuFFT its stream");
    check(quasi::cuda::late::cufftExecZ2Z(plan_, data, data, direction), "transforming");
  }

 private:
  cufftHandle plan_ = 0;
  bool valid_ = false;
};

}  // namespace quasi::gw::cuda
