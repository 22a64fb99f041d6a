#pragma once

#include <cstdint>
#include <vector>

#include "workers/gw/kernels/gw_kernels.hpp"
#include "workers/gw/physics/crystal.hpp"

// The folder spinors holds the part of a first order that acts on spins (docs/theory/gw.md 15.5).
// Begin here.
namespace quasi::gw {

/// Holds states of two components on plane waves K = k + G.
struct SpinorsAtPoint {
  Vec3 k{};                            ///< reduced
  const std::vector<IVec3>& g;         ///< G, [n_pw]
  View<const Cplx, 2> coefficients{};  ///< [n_states][2 n_pw], ↑ before ↓
};

/// Holds the elements of a separable operator, V_n'n = Σ_r bra[n'][r] ket[n][r].
struct SeparableElements {
  /// Number of products of one element: 2 factors of 3 directions and 2 spins.
  static constexpr std::int64_t kRank = 12;
  std::vector<Cplx> bra, ket;  ///< [n_states][kRank]

  /// Adds V_n'n of all n' and some n to a matrix, [n_bra][kets.size()].
  void add(BandRange kets, Cplx* elements) const;
};

/// First order of the spin–orbit term of a built-in crystal in the displacement of one atom a of
/// every cell along e, with the factor e^{ip·R} in cell R (docs/theory/gw.md 15.5), Ry/Bohr. With
/// K' = k + p + G' and K = k + G:
///
///   ∂H(K', K) = −(λ_a/N_at) b(K') b(K) ((K' − K)·e) e^{−i(K'−K)·τ_a} (K' × K)·σ
///
/// λ_a is the strength of the atom, τ_a its position, b the form factor of spin_orbit.hpp and σ
/// the vector of Pauli matrices. The term has the rank 12. At p = 0 it is Hermitian.
class SpinOrbitDisplacement {
 public:
  /// @param atom  position in the list of atoms of the crystal, from 0
  /// @param strength_ry_bohr2  λ_a
  /// @param direction  e, a Cartesian unit vector
  SpinOrbitDisplacement(const Crystal& crystal, int atom, double strength_ry_bohr2,
                        const Vec3& direction);

  /// Calculates V_n'n between states at k + p and at k, where p is the difference of both points.
  SeparableElements elements(const SpinorsAtPoint& bra, const SpinorsAtPoint& ket) const;
  /// Adds factor · ∂H ψ_n of states at p = 0 to a list of their shape, Ry/Bohr.
  void add_applied(double factor, const SpinorsAtPoint& states, Cplx* to) const;

 private:
  std::vector<Cplx> functions(const SpinorsAtPoint& states) const;
  std::vector<Cplx> projections(const SpinorsAtPoint& states) const;
  std::vector<Cplx> coupled_projections(const SpinorsAtPoint& states) const;

  Mat3 reciprocal_per_bohr_{};  ///< rows: reciprocal lattice vectors, Cartesian
  Vec3 position_bohr_{};
  Vec3 direction_{};
  double strength_;  ///< λ_a/N_at
};

}  // namespace quasi::gw
