#pragma once

#include <cstdint>

#include "workers/gw/kernels/cuda_context.cuh"
#include "workers/gw/kernels/polarizability/partial_chi.hpp"

namespace quasi::gw::cuda {

/// χ in the memory of one device.
class CudaChi final : public PartialChi {
 public:
  /// @param values   χ(0)
  /// @param further  χ(ω_i), may be empty
  CudaChi(SharedContext context, const ChiShape& shape, quasi::cuda::DeviceBuffer<double2> values,
          quasi::cuda::DeviceBuffer<double2> further)
      : PartialChi(shape),
        context_(std::move(context)),
        values_(std::move(values)),
        further_(std::move(further)) {}
  void add(const PartialChi& part) override;
  void read(Cplx* to) const override;
  std::vector<Cplx> diagonal() const override;
  std::vector<Cplx> corner(std::int64_t edge) const override;
  const Device& device() const { return context_->device(); }
  /// Returns χ(0) for frequency 0 and χ(ω_i) for i + 1.
  const double2* matrix(std::int64_t frequency) const {
    return frequency == 0 && shape().n_static > 0
               ? values_.data()
               : further_.data() +
                     (frequency - (shape().n_static > 0 ? 1 : 0)) * shape().n * shape().n;
  }

 private:
  SharedContext context_;
  quasi::cuda::DeviceBuffer<double2> values_, further_;
};

/// Edge and properties of the matrices of make_dielectric.
struct DielectricShape {
  std::int64_t n;
  bool triangle;  ///< only G ≤ G' of χ is filled
  bool positive;  ///< v > 0 everywhere
};
/// Makes ε̃_GG' = δ_GG' − factor χ_GG' with dielectric_factor() (docs/theory/gw.md 4).
void make_dielectric(const double2* chi, const double* coulomb, const DielectricShape& shape,
                     double2* epsilon, cudaStream_t stream);
/// Multiplies inverse_GG' by inverse_factor().
void scale_inverse(const double* coulomb, bool positive, std::int64_t n, double2* inverse,
                   cudaStream_t stream);

}  // namespace quasi::gw::cuda
