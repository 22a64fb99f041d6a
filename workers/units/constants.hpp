#pragma once

/// Exact SI values (2019), CODATA 2018 [tiesinga2021] and constants that follow from them. If
/// another program's constants differ, they stand in the compatibility mode of the kind, never
/// here.
namespace quasi::units {

inline constexpr double kPi = 3.14159265358979323846;

inline constexpr double kElementaryCharge_c = 1.602176634e-19;  // exact
inline constexpr double kBoltzmann_j_k = 1.380649e-23;          // exact
inline constexpr double kPlanck_j_s = 6.62607015e-34;           // exact
inline constexpr double kHbar_j_s = kPlanck_j_s / (2.0 * kPi);
inline constexpr double kAvogadro = 6.02214076e23;      // exact
inline constexpr double kLightSpeed_m_s = 299792458.0;  // exact
inline constexpr double kVacuumPermittivity_f_m = 8.8541878128e-12;
inline constexpr double kElectronMass_kg = 9.1093837015e-31;
inline constexpr double kAtomicMass_kg = 1.66053906660e-27;
inline constexpr double kBohr_m = 5.29177210903e-11;
inline constexpr double kRydberg_j = 2.1798723611035e-18;

inline constexpr double kHbar_ev_fs = kHbar_j_s / kElementaryCharge_c * 1e15;
inline constexpr double kBoltzmann_ev_k = kBoltzmann_j_k / kElementaryCharge_c;

}  // namespace quasi::units
