#pragma once

#include <cstdint>
#include <optional>

#include "workers/gw/kernels/cuda_context.cuh"
#include "workers/gw/kernels/polarizability/partial_chi.hpp"

namespace quasi::gw::cuda {

/// χ in the memory of one device. χ(0) without imaginary parts and without other frequencies is
/// kept as real numbers, in half of the memory.
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
  /// Takes a χ(0) without imaginary parts. @param real  χ(0), of which G ≤ G' is filled
  CudaChi(SharedContext context, const ChiShape& shape, quasi::cuda::DeviceBuffer<double> real)
      : PartialChi(shape), context_(std::move(context)), real_(std::move(real)) {}
  void add(const PartialChi& part) override;
  void read(Cplx* to) const override;
  std::optional<UnsetVector<double>> packed_triangle() const override;
  std::vector<Cplx> diagonal() const override;
  std::vector<Cplx> corner(std::int64_t edge) const override;
  const Device& device() const { return context_->device(); }
  /// True if χ(0) is kept as real numbers.
  bool is_real() const { return real_.size() > 0; }
  /// Returns the real numbers of χ(0).
  const double* real() const { return real_.data(); }
  /// Returns χ(0) for frequency 0 and χ(ω_i) for i + 1. @pre χ of that frequency is complex
  const double2* matrix(std::int64_t frequency) const {
    return frequency == 0 && shape().n_static > 0
               ? values_.data()
               : further_.data() +
                     (frequency - (shape().n_static > 0 ? 1 : 0)) * shape().n * shape().n;
  }

  /// Returns χ(0), which is gone from this object afterwards.
  quasi::cuda::DeviceBuffer<double2> take_static() { return std::move(values_); }
  /// Returns the real numbers of χ(0), which is gone from this object afterwards.
  quasi::cuda::DeviceBuffer<double> take_real() { return std::move(real_); }

 private:
  /// Replaces real numbers by complex ones.
  void widen();

  SharedContext context_;
  quasi::cuda::DeviceBuffer<double2> values_, further_;
  quasi::cuda::DeviceBuffer<double> real_;  ///< χ(0) in place of `values_`, or empty
};

/// Returns complex numbers with the given real parts, on the device in use.
quasi::cuda::DeviceBuffer<double2> complex_from(const double* real, std::int64_t count,
                                                cudaStream_t stream);

/// Copies the triangle G ≤ G' of a real matrix of edge n to a device, row by row, and sets the
/// other triangle to 0. @param values  [triangle_size(n)] @param matrix  on the device, [n][n]
void unpack_triangle(CudaContext& context, std::int64_t n, const double* values, double* matrix);

/// Edge and properties of the matrices of make_dielectric.
struct DielectricShape {
  std::int64_t n;
  bool triangle;  ///< only G ≤ G' of χ is filled
  bool positive;  ///< v > 0 everywhere
};
/// Makes ε̃_GG' = δ_GG' − factor χ_GG' with dielectric_factor() (docs/theory/gw.md 4).
void make_dielectric(const double2* chi, const double* coulomb, const DielectricShape& shape,
                     double2* epsilon, cudaStream_t stream);
/// Makes the whole ε̃ from the triangle G ≤ G' of χ(0) in its place; v > 0 everywhere.
void make_dielectric_in_place(double2* chi, const double* coulomb, std::int64_t n,
                              cudaStream_t stream);
/// Writes both triangles of the real ε̃ from the triangle G ≤ G' of a real χ(0). The Coulomb
/// interaction must be positive at all plane waves.
/// @param epsilon  [n][n]; it may be the array of χ
void make_real_dielectric(const double* chi, const double* coulomb, std::int64_t n, double* epsilon,
                          cudaStream_t stream);
/// Writes ε⁻¹_GG', which is inverse_GG' times inverse_factor(), to the host as complex numbers,
/// [n][n]; v > 0 everywhere.
void scale_to_host(CudaContext& context, const double* coulomb, std::int64_t n,
                   const double* inverse, Cplx* to);
/// Multiplies inverse_GG' by inverse_factor().
void scale_inverse(const double* coulomb, bool positive, std::int64_t n, double2* inverse,
                   cudaStream_t stream);

}  // namespace quasi::gw::cuda
