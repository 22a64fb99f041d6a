#pragma once

#include "workers/backend/device/device.hpp"
#include "workers/backend/device/device_buffer.cuh"
#include "workers/backend/device/library_handle.cuh"
#include "workers/backend/device/stream.cuh"
#include "workers/gw/kernels/gw_kernels.hpp"
#include "workers/gw/kernels/staged_copy.cuh"

namespace quasi::gw::cuda {

using quasi::cuda::check;

/// χ in the memory of one device.
class CudaChi final : public PartialChi {
 public:
  /// @param values  the static matrix;  @param further  χ(ω_i), may be empty
  /// @param staging  of the kernels that made it, which outlive it
  CudaChi(const Device& device, const ChiShape& shape, quasi::cuda::DeviceBuffer<double2> values,
          quasi::cuda::DeviceBuffer<double2> further, StagedCopy& staging, cudaStream_t stream)
      : PartialChi(shape),
        device_(device),
        values_(std::move(values)),
        further_(std::move(further)),
        staging_(&staging),
        stream_(stream) {}
  void add(const PartialChi& part) override;
  void read(Cplx* to) const override;
  std::vector<Cplx> diagonal() const override;
  std::vector<Cplx> corner(std::int64_t edge) const override;
  const Device& device() const { return device_; }
  /// Matrix 0 is χ(0), i + 1 is χ(ω_i).
  const double2* matrix(std::int64_t frequency) const {
    return frequency == 0 && shape().n_static > 0
               ? values_.data()
               : further_.data() +
                     (frequency - (shape().n_static > 0 ? 1 : 0)) * shape().n * shape().n;
  }

 private:
  Device device_;
  quasi::cuda::DeviceBuffer<double2> values_, further_;
  StagedCopy* staging_;
  cudaStream_t stream_;
};

/// δ_GG' − factor χ_GG' into `epsilon`, from the upper triangle alone or from the whole matrix.
void make_dielectric(const double2* chi, bool triangle, const double* coulomb, bool positive,
                     std::int64_t n, double2* epsilon, cudaStream_t stream);
/// inverse_GG' *= inverse_factor.
void scale_inverse(const double* coulomb, bool positive, std::int64_t n, double2* inverse,
                   cudaStream_t stream);

}  // namespace quasi::gw::cuda
