#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "workers/backend/checkpoint/checkpoint.hpp"
#include "workers/backend/unset_vector.hpp"
#include "workers/gw/kernels/polarizability/polarizability_kernels.hpp"

namespace quasi::gw {

/// Keeps χ of some pairs of bands in little host memory: the triangle G ≤ G' of χ(0), then each
/// whole χ(ω_i). If all values are real, only their real parts are kept. A static real χ of n
/// plane waves takes 4 n² bytes; HostChi takes 16 n².
class PackedChi {
 public:
  explicit PackedChi(const PartialChi& chi);
  /// Takes over the values that piece() gave. @param shape  of the χ that was packed
  PackedChi(const ChiShape& shape, Piece piece) : shape_(shape), piece_(std::move(piece)) {}
  /// Takes over packed values, as PartialChi::packed_triangle() gives them.
  PackedChi(const ChiShape& shape, UnsetVector<double> values);

  const ChiShape& shape() const { return shape_; }
  /// True if every value is real.
  bool is_real() const { return piece_.data[0] == 1.0; }
  /// Returns the packed values, for a checkpoint or for other ranks.
  const Piece& piece() const { return piece_; }

 private:
  ChiShape shape_;
  Piece piece_;  ///< 1 if all values are real, else 0; then the values
};

/// Adds up the portions of χ (kChiPortions) in packed form in host memory. It is used if the
/// device has no room for these sums.
class PackedSum final : public PartialChi {
 public:
  /// @param values  as PartialChi::read() gives them, [shape.size()]
  PackedSum(const ChiShape& shape, const Cplx* values);
  /// Packs χ of a device or of the host.
  explicit PackedSum(const PartialChi& chi);
  /// Takes over packed values, as PartialChi::packed_triangle() gives them.
  PackedSum(const ChiShape& shape, UnsetVector<double> values)
      : PartialChi(shape), values_(std::move(values)) {}
  /// Copies packed values, as PackedChi::piece() gives them.
  PackedSum(const ChiShape& shape, const Piece& piece);
  void add(const PartialChi& part) override;
  void read(Cplx* to) const override;
  std::vector<Cplx> diagonal() const override;
  std::vector<Cplx> corner(std::int64_t edge) const override;
  bool is_real() const { return values_[0] == 1.0; }
  const UnsetVector<double>& values() const { return values_; }
  /// Returns the values, which are gone from this object afterwards.
  UnsetVector<double> take_values() { return std::move(values_); }

 private:
  Cplx at(std::int64_t row, std::int64_t column) const;
  UnsetVector<double> values_;  ///< as in PackedChi
};

/// Packs χ of any kind. The values of a PackedSum are taken over without a copy.
PackedChi packed(std::unique_ptr<PartialChi> chi);

/// Returns χ in a form that PolarizabilityKernels::invert_dielectric takes: a PackedSum is brought
/// to the device, and other forms stay as they are.
std::unique_ptr<PartialChi> unpacked(std::unique_ptr<PartialChi> chi,
                                     PolarizabilityKernels& kernels);

/// Returns Σ_i factor_i χ_i of real packed triangles. Each element adds its terms in the order of
/// the list. The result is null if any χ_i is complex or has frequencies other than 0.
/// @param list  χ_i, which have the same shape
std::unique_ptr<PackedSum> weighted_triangle(const std::vector<const PackedChi*>& list,
                                             const std::vector<double>& factors);

/// Returns Σ_i factor_i χ_i on the device of `kernels` from real triangles, each element in the
/// order of the list; null if a χ is complex or has other frequencies.
/// @param list  χ_i, which have the same shape
std::unique_ptr<PartialChi> weighted_triangle(const std::vector<const PackedChi*>& list,
                                              const std::vector<double>& factors,
                                              PolarizabilityKernels& kernels);

/// Returns Σ_i factor_i χ_i [shape.size()] in the order of PartialChi::read(). Elements below the
/// diagonal of χ(0) are 0. Each element is added in the order of the list.
/// @param list  χ_i, which have the same shape
UnsetVector<Cplx> weighted_sum(const std::vector<const PackedChi*>& list,
                               const std::vector<double>& factors);

}  // namespace quasi::gw
