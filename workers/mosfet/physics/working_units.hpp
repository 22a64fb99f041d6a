#pragma once

#include "workers/units/constants.hpp"

/// Units of the kind `mosfet`: nm, eV, fs, V, elementary charge (docs/theory/mosfet.md 1). All
/// quantities of the model are then within a few decades of one, and no other scaling is needed.
/// Masses are in free-electron masses if a name ends in _m0, and in eV fs² nm⁻² inside formulas.
namespace quasi::mosfet {

inline constexpr double kHbar_ev_fs = units::kHbar_ev_fs;
inline constexpr double kElectronMass_ev_fs2_nm2 =
    units::kElectronMass_kg * 1e12 / units::kElementaryCharge_c;  // 5.685630
/// ħ²/2m0 in eV nm².
inline constexpr double kHbar2Over2m0_ev_nm2 =
    kHbar_ev_fs * kHbar_ev_fs / (2.0 * kElectronMass_ev_fs2_nm2);
/// e/ε0 in V nm.
inline constexpr double kChargeOverEpsilon0_v_nm =
    units::kElementaryCharge_c / units::kVacuumPermittivity_f_m * 1e9;
/// One e/(fs nm) in A/m.
inline constexpr double kCurrentUnit_a_m = units::kElementaryCharge_c * 1e24;
/// Density 1/(2π²ħ²) of both spins of one valley in a subband, per ħ² of the plane; Φ = K s f.
inline constexpr double kStates_per_ev2_fs2 =
    1.0 / (2.0 * units::kPi * units::kPi * kHbar_ev_fs * kHbar_ev_fs);

}  // namespace quasi::mosfet
