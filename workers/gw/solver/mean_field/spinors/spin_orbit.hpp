#pragma once

#include <complex>
#include <cstdint>
#include <iterator>
#include <vector>

#include "workers/backend/view.hpp"
#include "workers/gw/kernels/hamiltonian/hamiltonian_operator.hpp"
#include "workers/gw/physics/crystal.hpp"

// The folder workers/gw/solver/mean_field/spinors makes states of two components. Begin here with
// the spin–orbit term, which couples the components. empirical_pseudopotential.cpp adds it to the
// matrix of H, and load_mean_field.cpp adds it to H as an operator.
namespace quasi::gw {

/// Returns the form factor b(K) = (1 + K²/κ²)⁻² of the spin–orbit term, with κ² = 2 Ry.
/// @param k  K, Cartesian, 1/Bohr
double spin_orbit_form_factor(const Vec3& k);

/// Makes the spin–orbit term of built-in crystals between plane waves K = k+G (docs/theory/gw.md
/// 15.1), Ry, after Chelikowsky and Cohen [chelikowsky1976]:
///
///   H_σσ'(K, K') = −i b(K) b(K') (1/N_at) Σ_a λ_a e^{−i(G−G')·τ_a} (K × K')·σ_σσ'
///   b(K) = (1 + K²/κ²)⁻²,  κ² = 2 Ry
///
/// The indices σ and σ' are spins, and σ_σσ' is the vector of Pauli matrices. Atom a of the
/// N_at atoms has the strength λ_a and the position τ_a.
///
/// It is Hermitian and commutes with time reversal iσ_y K. Matrices are [2 n_pw][2 n_pw] with the
/// components ↑ of all plane waves before those of ↓. With ε_ijk of the cross product the term
/// is the sum of three projectors of each atom,
///
///   H_σσ'(K, K') = Σ_a Σ_ij β_ai(K) D_ij^{σσ'} β*_aj(K'),  β_ai(K) = b(K) K_i
///   e^{−iG·τ_a}, D_ij^{σσ'} = −i (λ_a/N_at) Σ_k ε_ijk σ_k^{σσ'}
class SpinOrbitTerm {
 public:
  /// @param strength_ry_bohr2  λ_a of each atom;  position  τ_a/2π of each atom, reduced
  SpinOrbitTerm(const Crystal& crystal, std::vector<double> strength_ry_bohr2,
                std::vector<Vec3> position);

  /// True if every λ is 0, so that H does not act on spins.
  bool vanishes() const;
  /// Returns the number of projectors: three of each atom with λ ≠ 0.
  std::int64_t n_projectors() const { return 3 * std::ssize(coupled_atoms()); }
  /// Adds the term at one k to a matrix.
  void add_to(const Vec3& k, const std::vector<IVec3>& g, std::complex<double>* h) const;
  /// Changes the parts of H at one k to those of spinors, and adds the projectors of the term.
  /// @param parts  parts of H for one component on the plane waves `g`, without projectors
  void add_to(const Vec3& k, const std::vector<IVec3>& g, HamiltonianParts& parts) const;

  /// Two sets of states on the plane waves of one k, [n][2 n_pw].
  struct Pairs {
    const Vec3& k;
    const std::vector<IVec3>& g;
    View<const std::complex<double>, 2> left, right;
  };
  /// Adds ⟨l| ∂H |r⟩ to a matrix, [n_left][n_right]. ∂ is the derivative with respect to x
  /// of k + x d. @param direction  d, reduced
  void add_slope(const Pairs& pairs, const Vec3& direction, std::complex<double>* matrix) const;

 private:
  /// Holds the plane waves K of one k, Cartesian in 1/Bohr, and b(K).
  struct Waves {
    std::vector<Vec3> k;
    std::vector<double> b;
  };
  Waves waves_of(const Vec3& k, const std::vector<IVec3>& g) const;
  /// Returns the numbers of the atoms with λ ≠ 0.
  std::vector<std::size_t> coupled_atoms() const;
  /// Returns w_i(K) e^{−iG·τ_a} of the coupled atoms, [n_atoms][i][n_pw].
  /// @param w  vector w(K) of each plane wave
  std::vector<std::complex<double>> of_atoms(const std::vector<IVec3>& g,
                                             const std::vector<Vec3>& w) const;
  /// Returns D_ij^{σσ'} between the projectors of the coupled atoms, Ry.
  SparseMatrix coupling() const;
  Vec3 cartesian(const Vec3& k) const;

  Mat3 bvec_{};
  double blat_per_bohr_ = 0.0;
  std::vector<double> strength_;  ///< λ_a/N_at
  std::vector<Vec3> position_;
};

}  // namespace quasi::gw
