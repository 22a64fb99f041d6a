#pragma once

#include "workers/units/constants.hpp"

namespace quasi::thermal {

/// Conversions between the units of force-constant files (eV, Å, Ry, bohr, amu) and those of the
/// calculation (rad/ps, nm, 1/ps). There are two sets: CODATA 2018 [tiesinga2021], and the rounded
/// values of FourPhonon (docs/theory/thermal.md 0), which `compat = "fourphonon"` selects.
struct PhysicalConstants {
  double hbar_1e34_j_s;            ///< ħ in 1e-34 J s
  double kb_1e23_j_k;              ///< k_B in 1e-23 J/K
  double ev_per_a2_amu_to_omega2;  ///< eV/(Å² amu) → (rad/ps)²
  double born_charge_factor;       ///< e²/(ε0 amu) → nm³ (rad/ps)²
  double rydberg_rad_ps;           ///< 1 Ry/ħ
  double amu_rydberg_mass;         ///< amu in Rydberg mass units (2 m_e)
  double bohr_nm;
  double rate_3ph;        ///< C3: W [ps⁴] |V|² [eV²/(Å⁶ amu³)] → 1/ps
  double rate_4ph;        ///< C4: W [ps⁵] |V|² [eV²/(Å⁸ amu⁴)] → 1/ps
  double gruneisen_unit;  ///< eV/(Å² amu) → (rad/ps)² in Grüneisen parameters; FourPhonon rounds it
                          ///< to 9647.2, 1.4e-4 too low

  /// Returns ħ/k_B in K·ps.
  double hbar_over_kb_k_ps() const { return hbar_1e34_j_s / kb_1e23_j_k * 10.0; }
};

inline constexpr PhysicalConstants kCodata2018{
    .hbar_1e34_j_s = units::kHbar_j_s * 1e34,
    .kb_1e23_j_k = units::kBoltzmann_j_k * 1e23,
    .ev_per_a2_amu_to_omega2 = units::kElementaryCharge_c / 1e-20 / units::kAtomicMass_kg * 1e-24,
    .born_charge_factor = units::kElementaryCharge_c * units::kElementaryCharge_c /
                          units::kVacuumPermittivity_f_m / units::kAtomicMass_kg * 1e27 * 1e-24,
    .rydberg_rad_ps = units::kRydberg_j / units::kHbar_j_s * 1e-12,
    .amu_rydberg_mass = units::kAtomicMass_kg / (2.0 * units::kElectronMass_kg),
    .bohr_nm = units::kBohr_m * 1e9,
    // ħπ/4 · (eV/Å³)² amu⁻³ · ps⁴ in 1/s, then 1/ps.
    .rate_3ph = units::kPi / 4.0 * units::kHbar_j_s * 1e34 *
                (units::kElementaryCharge_c * 1e19 * units::kElementaryCharge_c * 1e19) /
                (units::kAtomicMass_kg * 1e27 * units::kAtomicMass_kg * 1e27 *
                 units::kAtomicMass_kg * 1e27) *
                1e9,
    .rate_4ph = units::kPi / 8.0 * units::kHbar_j_s * 1e34 * units::kHbar_j_s * 1e34 *
                (units::kElementaryCharge_c * 1e19 * units::kElementaryCharge_c * 1e19) /
                (units::kAtomicMass_kg * 1e27 * units::kAtomicMass_kg * 1e27 *
                 units::kAtomicMass_kg * 1e27 * units::kAtomicMass_kg * 1e27) *
                1e10,
    .gruneisen_unit = units::kElementaryCharge_c / 1e-20 / units::kAtomicMass_kg * 1e-24,
};

inline constexpr PhysicalConstants kReferenceProgram{
    .hbar_1e34_j_s = 1.05457172647,
    .kb_1e23_j_k = 1.380648813,
    .ev_per_a2_amu_to_omega2 = 9648.53336213,
    .born_charge_factor = 1745.91429109,
    // FourPhonon has single-precision literals here (20670.687 and 1.8218779·6.022e-4), which
    // changes ω by 3.6e-8.
    .rydberg_rad_ps = 20670.687f,
    .amu_rydberg_mass = 1.0 / static_cast<double>(1.8218779f * 6.022e-4f),
    .bohr_nm = 0.052917721092,
    .rate_3ph = units::kPi / 4.0 * 1.05457172647 * 5.60626442e8,
    .rate_4ph = units::kPi / 8.0 * 1.05457172647 * 1.05457172647 * 3.37617087e9,
    .gruneisen_unit = 9647.2,
};

}  // namespace quasi::thermal
