#pragma once

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

  PlasmonPoleView view() const {
    return {{strength.data(), {n, n}}, {pole_ry.data(), {n, n}}, hermitian};
  }
};

/// Factors of the mini-zone average for one row and one column of ε⁻¹ (docs/theory/gw.md 5). For
/// q → 0 the wings
/// vanish. Elsewhere nothing is left to do: screening_at averages all elements alike, and no row
/// has to be chosen where several q+G are equally short.
struct WingFactors {
  std::vector<std::int64_t> wings;  ///< positions in the sphere; empty: none is changed
  double row = 1.0, column = 1.0;
};
WingFactors wing_factors(const DielectricMatrix& epsilon);

/// Factors of BerkeleyGW (WingRule::kListedPoint): ⟨1/|k+p|⟩ replaces 1/|k| in one
/// row and column:
///   row of the wing, column of none:  ⟨8π/|k+p|⟩ |k| / 8π
///   column of the wing, row of none:  ⟨8π/|k+p|⟩ / (v̄ |k|)
/// The wing is G = 0 of the irreducible point, whatever the rotation, with the length of q as the
/// zone's list has it but v̄ of the shortest q+G. (Found from its tables: any other choice of wing
/// or length is off by 10 to 15 meV at rotated q, this one by the noise of its average, 1 to 4.)
WingFactors wing_factors_of_listed_point(const DielectricMatrix& epsilon,
                                         const CoulombInteraction& coulomb, const Mat3& bdot,
                                         const Vec3& q);

/// δ − ε⁻¹(ω) on the first n plane waves, wings scaled.
UnsetVector<Cplx> screening_part(const DielectricMatrix& epsilon, std::size_t frequency,
                                 std::int64_t n, const WingFactors& wings);

/// v̄(q+G) of the sphere; the q of Σ is 0 where ε stands for q → 0.
std::vector<double> averaged_coulomb(const DielectricMatrix& epsilon, const GSphere& sphere,
                                     const CoulombInteraction& coulomb);

/// Hybertsen–Louie: Ω² from the density by the f-sum rule.
///   Ω²_GG' = ω_p² ρ(G−G')/ρ(0) (q+G)·(q+G') v̄(q+G)/8π,  ω_p² = 16π ρ(0)/Ω
///   ω̃'² = Ω²/I = λ e^{iφ};  ω̃² = λ / cos φ
PlasmonPoleModel hybertsen_louie(const MeanField& field, const DielectricMatrix& epsilon,
                                 std::int64_t n, const CoulombInteraction& coulomb,
                                 const WingFactors& wings, InvalidMode policy);

/// Godby–Needs: through ε⁻¹ at 0 and at i·ω_a (frequency 1): ω̃² = ω_a² Re[I(iω_a)/(I(0) −
/// I(iω_a))].
PlasmonPoleModel godby_needs(const DielectricMatrix& epsilon, std::int64_t n,
                             const CoulombInteraction& coulomb, const WingFactors& wings,
                             InvalidMode policy, double frequency_ry);

}  // namespace quasi::gw
