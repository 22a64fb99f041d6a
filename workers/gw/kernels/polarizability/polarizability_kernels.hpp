#pragma once

#include <cstdint>
#include <memory>

#include "workers/backend/view.hpp"
#include "workers/gw/kernels/pair_products/pair_product_kernels.hpp"
#include "workers/gw/kernels/polarizability/partial_chi.hpp"

namespace quasi::gw {

/// The sum χ over pairs of bands while it is being made (docs/theory/gw.md 4). Its
/// matrices lie on one device and belong to this object until finish().
class ChiSum {
 public:
  virtual ~ChiSum() = default;

  /// χ_GG'(0) += Σ_p w_p M*_p(G) M_p(G'), p over the pairs of the block, as a Hermitian product.
  /// @param weight  w, [n_left][n_right]
  /// @throws std::logic_error if weights of one call differ in sign
  virtual void add(const PairBlock& block, View<const double, 2> weight) = 0;
  /// χ_GG'(ω_i) += Σ_p w_p(ω_i) M*_p(G) M_p(G').
  /// @param weight  w, [n_frequencies][n_left][n_right]
  virtual void add_at_frequencies(const PairBlock& block, View<const Cplx, 3> weight) = 0;

  /// How add_pairs works. Both choices exist so that each can be checked against the other.
  struct PairsOptions {
    bool use_real = true;          ///< real arithmetic where every factor is real
    bool overlapped = true;        ///< transforms of a block run beside the product of the block
                                   ///< before (CUDA)
    std::int64_t block_bytes = 0;  ///< size of one block of M; 0: a size that suits the device
  };
  struct PairsReport {
    bool real = false;               ///< both sides, the sphere's factors and `head` were real
    double transform_seconds = 0.0;  ///< making the pair products
    double product_seconds = 0.0;    ///< adding them to χ; the two may run at the same time
  };
  /// The pairs of add_pairs.
  struct Pairs {
    BandSelection left, right;
    const LoadedSphere& sphere;
    View<const double, 2> weight;  ///< w of one sign, [n_left][n_right]
    View<const Cplx, 3> head;      ///< M_ln of the first plane waves instead of the transform's
                                   ///< (k·p), [n_heads][n_left][n_right]; no data: none
  };
  /// χ_GG'(0) += Σ_ln w_ln M*_ln(G) M_ln(G') over left × right, in blocks of M that are made, used
  /// and dropped.
  ///
  /// M is real where the coefficients of both sides and the factors are real: at a k-point that is
  /// its own inverse in a crystal with inversion. Two products then share one transform, and the
  /// matrix product is a real one with a quarter of the flops.
  virtual PairsReport add_pairs(const Pairs& pairs, const PairsOptions& options) = 0;

  /// Hands over the sum without copying it. The object is empty afterwards.
  virtual std::unique_ptr<PartialChi> finish() = 0;
};

/// Sums χ and inverses of the dielectric matrix on one device.
class PolarizabilityKernels {
 public:
  virtual ~PolarizabilityKernels() = default;
  /// Starts a sum of the given shape at χ = 0.
  virtual std::unique_ptr<ChiSum> start(const ChiShape& shape) = 0;
  /// Brings the values of PartialChi::read to this device again. [shape.size()]
  virtual std::unique_ptr<PartialChi> load(const ChiShape& shape, const Cplx* values) = 0;

  /// How ε is made of χ and inverted (docs/theory/gw.md 4).
  struct Inversion {
    View<const double, 1> coulomb;  ///< v(q+G), [n]
    bool positive = true;           ///< v > 0 everywhere
    bool definite = true;           ///< ε̃ is Hermitian and positive definite: Cholesky; else LU
  };
  /// ε⁻¹ of one matrix of χ: 0 is χ(0), i + 1 is χ(ω_i). All have one edge n. [n][n]
  /// @throws NotConverged naming the leading minor where ε̃ should be positive definite and is not
  virtual void invert_dielectric(const PartialChi& chi, std::int64_t frequency,
                                 const Inversion& how, View<Cplx, 2> inverse) = 0;
};

}  // namespace quasi::gw
