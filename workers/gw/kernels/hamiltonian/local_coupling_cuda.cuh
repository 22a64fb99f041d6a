#pragma once

#include <cstdint>
#include <utility>

#include "workers/gw/kernels/cuda_context.cuh"
#include "workers/gw/kernels/hamiltonian/local_coupling.hpp"

namespace quasi::gw::cuda {

/// Elements of perturbations in the memory of one device (docs/theory/gw.md 14.1).
class CudaCouplingBlock final : public CouplingBlock {
 public:
  explicit CudaCouplingBlock(SharedContext context) : context_(std::move(context)) {}
  void load(View<const Cplx, 3> elements) override;
  void read(View<Cplx, 3> elements) const override;
  /// Sets the shape of the block; its values become undefined. @returns the first value
  double2* resize(std::int64_t n_p, std::int64_t n_bra, std::int64_t n_ket);
  const double2* data() const { return elements_.data(); }

 private:
  SharedContext context_;
  quasi::cuda::DeviceBuffer<double2> elements_;
};

}  // namespace quasi::gw::cuda
