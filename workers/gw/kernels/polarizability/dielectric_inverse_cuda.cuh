#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "workers/gw/kernels/cuda_context.cuh"
#include "workers/gw/kernels/polarizability/dielectric_inverse.hpp"

namespace quasi::gw::cuda {

/// Elements of ε̃⁻¹ in device memory, [n][n]. They are complex numbers, or real ones in half
/// of the memory.
struct InverseOnDevice {
  const double2* complex = nullptr;
  const double* real = nullptr;  ///< used if it is not null
  std::int64_t n = 0;
  __device__ double2 at(std::int64_t row, std::int64_t column) const {
    const std::int64_t index = row * n + column;
    return real != nullptr ? double2{real[index], 0.0} : complex[index];
  }
};

/// ε̃⁻¹ in the memory of one device. See docs/theory/gw.md 4 for the equations.
class CudaInverse final : public DielectricInverse {
 public:
  CudaInverse(SharedContext context, std::int64_t n, quasi::cuda::DeviceBuffer<double2> values)
      : DielectricInverse(n), context_(std::move(context)), values_(std::move(values)) {}
  /// Makes the object of an inverse that is real. @param real  [n][n] its numbers
  CudaInverse(SharedContext context, std::int64_t n, quasi::cuda::DeviceBuffer<double> real)
      : DielectricInverse(n), context_(std::move(context)), real_(std::move(real)) {}
  std::vector<Cplx> rows(std::int64_t count) const override {
    context_->use();
    constexpr const char* kWhat = "rows of ε⁻¹";
    std::vector<Cplx> to(static_cast<std::size_t>(count * size()));
    if (real_.size() == 0) {
      context_->to_host(values_.data(), count * size(), to.data(), kWhat);
      return to;
    }
    std::vector<double> real(to.size());
    check(cudaStreamSynchronize(context_->stream()), kWhat);
    context_->staging().to_host(real_.data(), count * size() * std::int64_t{sizeof(double)},
                                real.data(), context_->stream(), kWhat);
    std::copy(real.begin(), real.end(), to.begin());
    return to;
  }
  InverseOnDevice view() const {
    return {values_.data(), real_.size() > 0 ? real_.data() : nullptr, size()};
  }
  const Device& device() const { return context_->device(); }

 private:
  SharedContext context_;
  quasi::cuda::DeviceBuffer<double2> values_;  ///< empty where `real_` is used
  quasi::cuda::DeviceBuffer<double> real_;     ///< empty if an element may be complex
};

}  // namespace quasi::gw::cuda
