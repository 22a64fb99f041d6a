#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "workers/gw/solver/mean_field/problem.hpp"

// The folder workers/gw/solver/calculation/memory counts the bytes of the steps of a job before it
// starts. Begin here with the bands and products that every sum over pairs of bands holds.
namespace quasi::gw {

/// Describes the arrays in which a device holds bands for products M_ln(G) of pairs.
struct BandArrays {
  double points = 0.0;    ///< of the box of transforms
  double n_pw = 0.0;      ///< most plane waves of a band
  double n_spinor = 1.0;  ///< components of a band
  bool on_cpu = false;
};
/// Returns the arrays for products on a box of transforms.
BandArrays band_arrays(const MeanField& field, const std::array<int, 3>& box, bool on_cpu);
/// Returns the arrays for products that are kept on the plane waves of a sphere.
BandArrays band_arrays(const MeanField& field, const std::vector<IVec3>& sphere, bool on_cpu);

/// Counts the pairs of `left` and `right` bands that a device has at a time, with products on `n_g`
/// plane waves.
struct PairShape {
  double left = 0.0, right = 0.0, n_g = 0.0;
  bool real = false;  ///< bands and products have no imaginary parts
  double pairs() const { return left * right; }
};

/// Returns the bytes of the bands of both sides and of a batch of transforms. A CPU has bands on
/// the box, or the matrix of a convolution, and copies of their coefficients.
double bytes_of_bands(const BandArrays& arrays, const PairShape& shape);

/// Returns the bytes in which the density of the occupied states is summed (summed_density()).
double bytes_of_density(const MeanField& field, bool on_cpu);

/// Returns the bytes in which overlaps and the sum rule of `bands` bands are examined.
double bytes_of_overlaps(const MeanField& field, double bands, std::int64_t budget_bytes,
                         bool on_cpu);

/// Returns the bytes of the pairs of a static χ beside its sums: the bands, and the blocks of
/// weighted products. A GPU fills one block while it multiplies the other. A CPU has one block and
/// its weighted copy.
double bytes_of_chi_pairs(const BandArrays& arrays, const PairShape& shape);

/// Returns the bytes of exchange, whose occupied bands come in blocks.
/// @param shape  outer states, occupied bands, and plane waves of the bare interaction
double bytes_of_exchange(const BandArrays& arrays, const PairShape& shape,
                         std::int64_t budget_bytes);

/// Returns the bytes of the bands and products of one block of inner bands of Σ.
/// @param times  copies of the products, the products themselves among them
double bytes_of_products(const BandArrays& arrays, const PairShape& shape, double times);

}  // namespace quasi::gw
