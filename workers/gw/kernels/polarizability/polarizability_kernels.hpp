#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "workers/backend/unset_vector.hpp"
#include "workers/backend/view.hpp"
#include "workers/gw/kernels/pair_products/pair_product_kernels.hpp"
#include "workers/gw/kernels/polarizability/dielectric_inverse.hpp"
#include "workers/gw/kernels/polarizability/partial_chi.hpp"
#include "workers/gw/model/column_slices.hpp"

namespace quasi::gw {

/// Sums χ over pairs of bands and makes the products M of the pairs itself (docs/theory/gw.md 4).
class PairSum {
 public:
  virtual ~PairSum() = default;

  /// Options of add_pairs. Tests compare the results of both choices.
  struct PairsOptions {
    bool use_real = true;    ///< use real arithmetic if every factor is real
    bool overlapped = true;  ///< transforms of a block run beside the product of the previous block
                             ///< (CUDA)
    std::int64_t block_bytes = 0;  ///< size of one block of M; 0: a size that suits the device
  };
  struct PairsReport {
    bool real = false;               ///< both sides, the sphere's factors and `head` were real
    double transform_seconds = 0.0;  ///< time of making the pair products
    double product_seconds = 0.0;  ///< time of adding them to χ; the two may run at the same time
  };
  /// Pairs of bands for add_pairs.
  struct Pairs {
    BandSelection left, right;
    const LoadedSphere& sphere;
    View<const double, 2> weight;  ///< w of one sign, [n_left][n_right]
    View<const Cplx, 3> head;  ///< given M_ln of the first plane waves (k·p), which replaces the
                               ///< transform's, [n_heads][n_left][n_right]; no data: none
  };
  /// Adds χ_GG'(0) += Σ_ln w_ln M*_ln(G) M_ln(G') over left × right, in blocks of M that are made,
  /// used and dropped.
  ///
  /// M is real if the coefficients of both sides and the factors are real. This is so at a k-point
  /// that equals its own inverse in a crystal with inversion. Two products then share one
  /// transform, and the matrix product is a real one with a quarter of the flops.
  virtual PairsReport add_pairs(const Pairs& pairs, const PairsOptions& options) = 0;
};

/// Begin here: holds the sum χ over pairs of bands while it grows (docs/theory/gw.md 4). Its
/// matrices are in the memory of one device and belong to this object until finish().
class ChiSum : public PairSum {
 public:
  /// Adds χ_GG'(0) += Σ_p w_p M*_p(G) M_p(G') for the pairs p of the block, as a Hermitian
  /// product.
  /// @param weight  w, [n_left][n_right] @throws std::logic_error if weights of one call differ in
  /// sign
  virtual void add(const PairBlock& block, View<const double, 2> weight) = 0;
  /// Adds χ_GG'(ω_i) += Σ_p w_p(ω_i) M*_p(G) M_p(G'). @param weight  w,
  /// [n_frequencies][n_left][n_right]
  virtual void add_at_frequencies(const PairBlock& block, View<const Cplx, 3> weight) = 0;

  /// Returns the sum without copying it. The object is empty afterwards.
  virtual std::unique_ptr<PartialChi> finish() = 0;
};

/// Holds one slice of χ(0) in host memory: the elements G' ≥ G of the rows G, one row after
/// another.
struct ChiSlice {
  ElementRows rows;
  bool real = true;            ///< true if every value is real
  UnsetVector<double> values;  ///< one number per element if all are real, else Re and Im
};

/// Sums some slices of χ(0) on one device (model/column_slices.hpp). The device makes the products
/// of each block of pairs once and adds them to every slice.
class SlicedChiSum : public PairSum {
 public:
  /// Returns the slices in the order of start_slices(). The object is empty afterwards.
  virtual std::vector<ChiSlice> finish() = 0;
};

/// Sums χ and inverses of the dielectric matrix on one device.
class PolarizabilityKernels {
 public:
  virtual ~PolarizabilityKernels() = default;
  /// Starts a sum of the given shape with χ = 0.
  virtual std::unique_ptr<ChiSum> start(const ChiShape& shape) = 0;
  /// Starts the sums of some slices of χ(0) with χ = 0.
  /// @param n       edge of χ(0), the number of plane waves
  /// @param slices  rows of each slice
  virtual std::unique_ptr<SlicedChiSum> start_slices(std::int64_t n,
                                                     const std::vector<ElementRows>& slices) = 0;
  /// Copies values of PartialChi::read back to this device. [shape.size()]
  virtual std::unique_ptr<PartialChi> load(const ChiShape& shape, const Cplx* values) = 0;
  /// Copies the triangle of a real χ(0) of edge n to this device; [triangle_size(n)].
  virtual std::unique_ptr<PartialChi> load_triangle(std::int64_t n, const double* values) = 0;

  /// Options by which ε is made of χ and inverted (docs/theory/gw.md 4).
  struct Inversion {
    View<const double, 1> coulomb;  ///< v(q+G), [n]
    bool positive = true;           ///< v > 0 everywhere
    bool definite = true;  ///< ε̃ is Hermitian and positive definite, so Cholesky is used; else LU
  };
  /// Computes ε⁻¹ of one matrix of χ: 0 is χ(0), i + 1 is χ(ω_i). All have one edge n. [n][n]
  /// @throws NotConverged naming the leading minor if ε̃ is not positive definite although it
  /// should be
  virtual void invert_dielectric(const PartialChi& chi, std::int64_t frequency,
                                 const Inversion& how, View<Cplx, 2> inverse) = 0;
  /// Computes ε̃⁻¹ of χ(0) in place of χ, which is gone afterwards, and leaves it on this
  /// device.
  /// @param coulomb  v(q+G) > 0, [n_static]
  /// @throws NotConverged naming the leading minor if ε̃ is not positive definite
  virtual std::unique_ptr<const DielectricInverse> invert_definite(
      std::unique_ptr<PartialChi> chi, View<const double, 1> coulomb) = 0;
};

}  // namespace quasi::gw
