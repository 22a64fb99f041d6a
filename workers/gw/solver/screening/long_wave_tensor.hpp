#pragma once

#include <array>
#include <complex>
#include <vector>

#include "workers/backend/unset_vector.hpp"
#include "workers/gw/physics/crystal.hpp"
#include "workers/gw/solver/screening/coulomb/coulomb_interaction.hpp"

namespace quasi::gw {

using Cplx = std::complex<double>;
using CMat3 = std::array<std::array<Cplx, 3>, 3>;

/// ε⁻¹(q → 0) in every direction q̂ (Cartesian) at one frequency. With ε̃⁻¹ = v^−½ ε⁻¹ v^½,
///
///   ε̃⁻¹_00 = 1/s,  ε̃⁻¹_G0 = l_G/s,  ε̃⁻¹_0G' = r_G'/s,  ε̃⁻¹_GG' = B⁻¹_GG' + l_G r_G'/s
///   s = q̂ᵀ ε_M q̂,  l = Σ_i q̂_i l_i,  r = Σ_i q̂_i r_i
///
/// since head and wings of ε̃ are quadratic and linear in q̂ and its body B does not depend on it.
struct LongWaveLimit {
  CMat3 epsilon{};  ///< ε_M, Cartesian: the macroscopic dielectric tensor, local fields included
  std::array<std::vector<Cplx>, 3> left,
      right;  ///< l_i and r_i, [n]; element 0, which stands for G = 0, is 0
};

CMat3 inverse(const CMat3& m);
/// q̂_i q̂_j/(q̂ᵀ ε q̂).
CMat3 along(const CMat3& epsilon, const Vec3& q);
/// q as a Cartesian unit vector.
Vec3 unit_direction(const Crystal& crystal, const Vec3& q);
/// The reduced vectors of one length, 1/Bohr, along x, y and z.
std::array<Vec3, 3> along_cartesian_axes(const Crystal& crystal, double length_per_bohr);

/// Folds an inverse whose first three plane waves stand for G = 0, for q along x, y and z, into ε⁻¹
/// of one direction (docs/theory/gw.md 4.1). The inverse of its 3 × 3 corner is ε_M.
/// @param wide     [n + 2][n + 2];  @param coulomb  v(q+G), [n], positive where `wave` is wanted
/// @param inverse  of the direction, [n][n];  @param wave  null: not wanted
void fold_directions(const UnsetVector<Cplx>& wide, const std::vector<double>& coulomb,
                     const Vec3& direction, UnsetVector<Cplx>& inverse, LongWaveLimit* wave);

/// The change of ε̃⁻¹(q → 0) from one direction to another one, or to an average over directions
/// (docs/theory/gw.md 4.1): body += Σ_ij l_i body_ij r_j, with new wings and a new head.
struct ChangeOfDirection {
  CMat3 body{};
  Vec3 wings{};  ///< by which Σ_i wings_i l_i and Σ_i wings_i r_i become wings, times the head
  Cplx head;
  /// Changes row g of the matrix, [n]. Rows are changed one by one, while they are in the cache of
  /// the thread that has calculated them.
  void apply(const LongWaveLimit& wave, std::size_t g, Cplx* row) const;
};
/// Returns the change from the direction `from` to the direction `to`.
ChangeOfDirection turned(const LongWaveLimit& wave, const Vec3& from, const Vec3& to);
/// ε̃⁻¹ of q → 0 in sums over the q-grid: the factor of v̄₀ in W's head, and the average of
/// q_i q_j/(qᵀ ε q).
struct AverageAtZero {
  Cplx head;
  CMat3 directions{};
};
/// Returns the weights of PuncturedGrid over that of v, or averages over the mini-zone, as the
/// interaction sums. A complex tensor ε has weights of PuncturedGrid only where it is a number;
/// elsewhere the averages over the mini-zone stand in.
AverageAtZero average_at_zero(const CoulombInteraction& coulomb, const CMat3& epsilon);
/// Returns the change to that average. The wings are odd in q and become 0.
/// @param epsilon  ε_M that is averaged
ChangeOfDirection averaged_directions(const LongWaveLimit& wave, const Vec3& from,
                                      const CMat3& epsilon, const CoulombInteraction& coulomb);
/// ⟨8π/(pᵀ ε p)⟩ and ⟨p_i p_j/(pᵀ ε p)⟩ over p of a mini-zone.
Cplx average_of_screened(const MiniZone& zone, const CMat3& epsilon);
CMat3 average_of_directions(const MiniZone& zone, const CMat3& epsilon);

/// Averages the symmetric part of a tensor over the group, (1/|G|) Σ_S S ε Sᵀ.
CMat3 with_symmetry_of(const Crystal& crystal, const std::vector<SymmetryOperation>& operations,
                       const CMat3& epsilon);
/// True if the operations leave no symmetric tensor invariant but the metric: ε_M is a number.
bool is_isotropic(const Crystal& crystal, const std::vector<SymmetryOperation>& operations);

}  // namespace quasi::gw
