#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "workers/gw/kernels/cuda_context.cuh"
#include "workers/gw/kernels/polarizability/dielectric_inverse.hpp"

namespace quasi::gw::cuda {

/// ε̃⁻¹ in the memory of one device. See docs/theory/gw.md 4 for the equations.
class CudaInverse final : public DielectricInverse {
 public:
  CudaInverse(SharedContext context, std::int64_t n, quasi::cuda::DeviceBuffer<double2> values)
      : DielectricInverse(n), context_(std::move(context)), values_(std::move(values)) {}
  std::vector<Cplx> rows(std::int64_t count) const override {
    context_->use();
    std::vector<Cplx> to(static_cast<std::size_t>(count * size()));
    context_->to_host(values_.data(), count * size(), to.data(), "rows of ε⁻¹");
    return to;
  }
  const double2* data() const { return values_.data(); }
  const Device& device() const { return context_->device(); }

 private:
  SharedContext context_;
  quasi::cuda::DeviceBuffer<double2> values_;
};

}  // namespace quasi::gw::cuda
