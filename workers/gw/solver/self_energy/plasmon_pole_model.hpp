#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <vector>

#include "workers/gw/kernels/gw_kernels.hpp"
#include "workers/gw/model/sigma_options.hpp"
#include "workers/gw/solver/screening/epsilon.hpp"

namespace quasi::gw {

/// The screened interaction of one irreducible q as plasmon poles.
struct PlasmonPoleModel {
  std::int64_t n = 0;
  UnsetVector<Cplx> strength;   ///< A, as in PlasmonPoleView; [n][n]
  UnsetVector<double> pole_ry;  ///< [n][n]
  std::vector<ImaginaryPole> imaginary;
  std::int64_t skipped = 0;  ///< negligible elements
  std::int64_t invalid = 0;  ///< ω̃² < 0
  bool hermitian = false;    ///< one triangle mirrors the other
  bool real = false;         ///< no strength has an imaginary part

  PlasmonPoleView view() const {
    return {{strength.data(), {n, n}}, {pole_ry.data(), {n, n}}, hermitian, real};
  }
};

/// Factors of the mini-zone average for one row and one column of ε⁻¹ (docs/theory/gw.md 5). The
/// wings vanish for q → 0. At other q the factors are 1, because screening_at() averages all
/// elements alike.
struct WingFactors {
  std::vector<std::int64_t> wings;  ///< positions in the sphere; empty: none is changed
  double row = 1.0, column = 1.0;
};
WingFactors wing_factors(const DielectricMatrix& epsilon);

/// Factors of BerkeleyGW (WingRule::kListedPoint): ⟨1/|k+p|⟩ replaces 1/|k| in one
/// row and column:
///   row of the wing, column of none:  ⟨8π/|k+p|⟩ |k| / 8π
///   column of the wing, row of none:  ⟨8π/|k+p|⟩ / (v̄ |k|)
/// The wing is G = 0 of the irreducible point for every rotation. The length |k| is that of the q
/// in the zone's list, and v̄ is that of the shortest q+G. This choice was found from the tables of
/// BerkeleyGW: Σ at rotated q differs from them by 1 to 4 meV, the noise of their average. Any
/// other choice of wing or length differs by 10 to 15 meV.
WingFactors wing_factors_of_listed_point(const DielectricMatrix& epsilon,
                                         const CoulombInteraction& coulomb, const Mat3& bdot,
                                         const Vec3& q);

/// δ − ε⁻¹(ω) on the first n plane waves, wings scaled.
UnsetVector<Cplx> screening_part(const DielectricMatrix& epsilon, std::size_t frequency,
                                 std::int64_t n, const WingFactors& wings);

/// Averaged interaction v̄(q+G) of every plane wave of the sphere, Ry bohr³. The q of Σ is 0 where
/// `epsilon` is that of q → 0.
std::vector<double> averaged_coulomb(const DielectricMatrix& epsilon, const GSphere& sphere,
                                     const CoulombInteraction& coulomb);

/// ω_p² ρ(D)/ρ(0) of all differences D of a list of plane waves, Ry², in a box around 0.
struct PlasmaDensity {
  double plasma2_ry2 = 0.0;              ///< ω_p²
  std::array<std::int32_t, 3> extent{};  ///< the edges of the box are 2 extent + 1
  std::vector<Cplx> values;
  const Cplx& at(const IVec3& d) const {
    std::int64_t position = 0;
    for (std::size_t i = 0; i < 3; ++i)
      position = position * (2 * extent[i] + 1) + d[i] + extent[i];
    return values[static_cast<std::size_t>(position)];
  }
};
PlasmaDensity plasma_density(const MeanField& field, const std::vector<IVec3>& waves);

/// Makes the poles of the first n plane waves by Hybertsen and Louie's rule: Ω² follows from the
/// density by the f-sum rule (docs/theory/gw.md 6.2).
///   Ω²_GG' = ω_p² ρ(G−G')/ρ(0) (q+G)·(q+G') v̄(q+G)/8π,  ω_p² = 16π ρ(0)/Ω
///   ω̃'² = Ω²/I = λ e^{iφ};  ω̃² = λ / cos φ
PlasmonPoleModel hybertsen_louie(const MeanField& field, const DielectricMatrix& epsilon,
                                 std::int64_t n, const CoulombInteraction& coulomb,
                                 const WingFactors& wings, InvalidMode policy);

/// Makes the poles of the first n plane waves by Godby and Needs' rule from ε⁻¹ at 0 and at iω_a,
/// its frequency 1 (docs/theory/gw.md 6.3): ω̃² = ω_a² Re[I(iω_a)/(I(0) − I(iω_a))].
/// @param frequency_ry  ω_a
PlasmonPoleModel godby_needs(const DielectricMatrix& epsilon, std::int64_t n,
                             const CoulombInteraction& coulomb, const WingFactors& wings,
                             InvalidMode policy, double frequency_ry);

}  // namespace quasi::gw
