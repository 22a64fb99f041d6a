#pragma once

#include <vector>

#include "workers/gw/kernels/gw_kernels.hpp"
#include "workers/gw/model/mean_field.hpp"
#include "workers/gw/physics/crystal.hpp"

namespace quasi::gw {

/// Returns the first projector of each atom. Projectors are grouped by species, and the atoms of a
/// species are in the order of the file.
std::vector<int> first_projectors(const Projectors& projectors);

/// Calculates Σ_q D_pq b_q within each atom for b [n_projectors][n].
std::vector<Cplx> apply_d(const Projectors& projectors, const std::vector<Cplx>& b, std::size_t n,
                          int spin);

/// Kleinman–Bylander projectors between the plane waves of a VKB file: for each projector
///   β(K) = e^{−iK·R} Σ_m R_lm(K) Σ_j c_mj T_j(K²)
/// with real solid harmonics R_lm, Chebyshev polynomials T_j and the position R of the atom
/// (docs/theory/gw.md 9). l and the number of polynomials are chosen so that the fit predicts best
/// the shells of |K| that it leaves out; residual() is its largest error there. The fit gives the
/// derivative of the non-local potential with respect to k, and so the limit q → 0 without a second
/// set of wavefunctions.
class RadialProjectors {
 public:
  /// @throws InvalidInput if a projector is no function of this form.
  explicit RadialProjectors(const Projectors& projectors);

  /// Largest |fit − β| on shells left out, over all projectors, relative to the largest |β| of
  /// each.
  double residual() const { return residual_; }
  /// β_p(K) at Cartesian K = k+G, 1/Bohr; [n_projectors][n].
  std::vector<Cplx> at(const std::vector<Vec3>& k_plus_g) const;
  std::vector<Cplx> apply_d(const std::vector<Cplx>& b, std::size_t n, int spin) const {
    return gw::apply_d(description_, b, n, spin);
  }
  int count() const { return description_.n_projectors; }

 private:
  struct Channel {
    int l = 0;
    int n_polynomials = 0;
    std::vector<Cplx> coefficient;  ///< [2l+1][n_polynomials]
  };
  Cplx radial(const Channel& channel, const Vec3& k) const;
  Channel fit(const std::vector<Vec3>& k, const std::vector<Cplx>& value, double* residual) const;

  Projectors description_;  ///< without its plane waves and β
  double k_max_ = 0.0;
  double sign_ = -1.0;                         ///< of the phase e^{±iK·R}
  std::vector<Vec3> position_;                 ///< of the atoms, Cartesian Bohr
  std::vector<int> first_;                     ///< first projector of each atom
  std::vector<std::vector<Channel>> channel_;  ///< [species][projector]
  double residual_ = 0.0;
};

/// All pairs of a band of `left` and a band of `right`, counted from 0, of one spin at one
/// irreducible k.
struct BandPairs {
  int k_index = 0;
  int spin = 0;
  BandRange left, right;
};

/// Calculates ⟨v| ∂H/∂λ |c⟩ of H(k + λ d) for each direction d, Ry, [direction][left][right]
/// (docs/theory/gw.md 4.1). The kinetic part is 2 (k+G)·d. The local potential contributes
/// nothing. The non-local potential is differenced over λ = ±1e-4. The spin–orbit term is left
/// to SpinOrbitTerm::add_slope().
/// @param directions  d in reduced coordinates
/// @param nonlocal    null if H is local
std::vector<Cplx> velocity_matrices(const Wavefunctions& waves, const BandPairs& pairs,
                                    const std::vector<Vec3>& directions,
                                    const RadialProjectors* nonlocal, GwKernels& kernels);

}  // namespace quasi::gw
