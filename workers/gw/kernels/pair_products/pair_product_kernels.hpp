#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <memory>

#include "workers/backend/view.hpp"

namespace quasi::gw {

using Cplx = std::complex<double>;

/// Edges of the box of fast Fourier transforms. Frequency (i, j, k), each taken modulo its edge,
/// has the position (i·box[1] + j)·box[2] + k.
using FftBox = std::array<int, 3>;

/// Half-open range of bands [begin, end), counted from the first band of a LoadedBands.
struct BandRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
};

/// Wavefunctions of some bands at one k-point, on one device, until the object is destroyed.
class LoadedBands {
 public:
  virtual ~LoadedBands() = default;
};

/// Plane waves at which pair products are kept, on one device, until the object is destroyed.
class LoadedSphere {
 public:
  virtual ~LoadedSphere() = default;
};

/// Selection of bands that are on a device.
struct BandSelection {
  const LoadedBands& bands;
  BandRange range;
};

/// A block of pair products M[l][n][G] on one device, and the products of its rows with matrices.
/// Matrices are row-major, index G before G'. The block owns its memory and keeps it for the next
/// filling. An empty block holds none.
class PairBlock {
 public:
  virtual ~PairBlock() = default;
  std::int64_t n_left() const { return n_left_; }    ///< number of l
  std::int64_t n_right() const { return n_right_; }  ///< number of n
  std::int64_t n_g() const { return n_g_; }          ///< number of G, or of basis vectors
  std::int64_t n_pairs() const { return n_left_ * n_right_; }

  /// Replaces the block by values from the host, [n_left][n_right][n_g].
  virtual void load(View<const Cplx, 3> products) = 0;
  /// Copies the block to the host, [n_left][n_right][n_g].
  virtual void read(View<Cplx, 3> products) const = 0;
  /// Sets M[l][n][g] ← values[l][n] for one plane wave g. This is the limit q → 0 of G = 0 by k·p.
  virtual void replace_plane_wave(std::int64_t g, View<const Cplx, 2> values) = 0;
  /// Replaces M by M·B with B [n_g][n_basis]. The block becomes [n_left][n_right][n_basis], with
  /// products in the static subspace.
  virtual void project(View<const Cplx, 2> basis) = 0;

  /// Computes sum[l][n] = Σ_G |M_ln(G)|² v(G), the terms of the bare exchange. [n_left][n_right]
  virtual void weighted_norms(View<const double, 1> v, View<double, 2> sum) const = 0;
  /// Computes form[l][n] = Σ_GG' M_ln(G) W_GG' M*_ln(G'), the terms of COHSEX and of contour
  /// deformation. @param matrix  W, [n_g][n_g];  form  [n_left][n_right]
  virtual void quadratic_forms(View<const Cplx, 2> matrix, View<Cplx, 2> form) const = 0;
  /// Adds sum[e][l][m] += Σ_n w_en Σ_GG' M_ln(G) W_GG' M*_mn(G'). @param weight  w,
  /// [n_energies][n_right];  sum  [n_energies][n_left][n_left]
  virtual void quadratic_form_matrix(View<const Cplx, 2> matrix, View<const double, 2> weight,
                                     View<Cplx, 3> sum) const = 0;
  /// Adds sum[e][l][m] += Σ_fn w_nfe Σ_G M_ln(G) d_f(G) M*_mn(G). @param diagonal  d,
  /// [n_frequencies][n_g];  weight  w, [n_right][n_frequencies][n_energies]
  virtual void diagonal_form_matrix(View<const Cplx, 2> diagonal, View<const double, 3> weight,
                                    View<Cplx, 3> sum) const = 0;

 protected:
  std::int64_t n_left_ = 0, n_right_ = 0, n_g_ = 0;
};

/// Begin here: computes pair products of wavefunctions on one device (docs/theory/gw.md 3),
///
///   M_ln(G) = 1/N_r Σ_r u*_l(r) u_n(r) e^{+iGr}.
///
/// The product of spinors is summed over their components, u*_l↑ u_n↑ + u*_l↓ u_n↓. One
/// instance and the objects that it makes serve one thread at a time. Bands, sphere and box of one
/// product must belong together.
class PairProductKernels {
 public:
  virtual ~PairProductKernels() = default;
  /// Copies the wavefunctions of some bands to the device. @param coefficients  c_n(G),
  /// [n_bands][n_pw], or [n_bands][2 n_pw] with both components of spinors;  box_index  position of
  /// each G, [n_pw]
  virtual std::unique_ptr<const LoadedBands> load_bands(const FftBox& box,
                                                        View<const Cplx, 2> coefficients,
                                                        View<const std::int32_t, 1> box_index) = 0;
  /// Copies the plane waves of kept products to the device. With the factors e^{−i(G+g₀)·τ} of a
  /// symmetry operation, products at a rotated q become those of the irreducible q, so that
  /// matrices are loaded once for each irreducible q.
  /// @param box_index  position of each G, [n_g]
  /// @param factor     factors of the kept products, [n_g], or empty for 1
  virtual std::unique_ptr<const LoadedSphere> load_sphere(const FftBox& box,
                                                          View<const std::int32_t, 1> box_index,
                                                          View<const Cplx, 1> factor) = 0;
  /// Makes an empty block.
  virtual std::unique_ptr<PairBlock> make_block() = 0;
  /// Fills `block` with M[l][n][G] for l in left, n in right and G in the sphere.
  virtual void fill(const BandSelection& left, const BandSelection& right,
                    const LoadedSphere& sphere, PairBlock& block) = 0;
  /// Adds the density of some bands, sum[G] += w Σ_n M*_nn(G) for G in the sphere.
  virtual void add_density(const BandSelection& bands, const LoadedSphere& sphere, double weight,
                           View<Cplx, 1> sum) = 0;
};

}  // namespace quasi::gw
