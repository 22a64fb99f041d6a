#pragma once

#include <string>

#include "workers/thermal/physics/broadening.hpp"
#include "workers/thermal/physics/physical_constants.hpp"

namespace quasi::thermal {

/// Dipole–dipole term of constants that a supercell contains (docs/theory/thermal.md 3.4).
enum class DipoleMethod {
  kMixedSpace,  ///< [wang2010]
  kGonzeLee,    ///< [gonze1997]: subtracted at the wave vectors of the supercell, added at each q
};

/// Options for harmonic modes from second-order constants (docs/theory/thermal.md 3), and for the
/// findings that are errors.
struct HarmonicOptions {
  PhysicalConstants constants = kCodata2018;
  bool compat = false;      ///< eigenvectors, little groups and Ewald sphere of FourPhonon
  bool nonanalytic = true;  ///< adds the dipole–dipole term of polar crystals
  bool ewald = false;       ///< computes that term as an Ewald sum, for constants without dipoles
  DipoleMethod dipole_method = DipoleMethod::kGonzeLee;  ///< for constants with dipoles
  bool whole_dipoles = false;    ///< adds the whole dipole sum, as constants of TDEP need it
  bool phonopy_damping = false;  ///< Gonze–Lee with the damping of phonopy [togo2023]
  double symmetry_tolerance_nm = 1e-5;
  double degeneracy_rad_ps = 1e-4;  ///< branches closer than this are one degenerate set
  bool average_degenerate = true;   ///< velocities are averaged over each degenerate set
  Broadening broadening = Broadening::kSymmetric;
  double fixed_sigma_rad_ps = 0.0;  ///< σ of kFixed
  bool allow_imaginary = false;
  bool allow_inconsistent_position = false;
  std::string positions_location;  ///< where the user gave the positions, for messages
  std::string epsilon_location;    ///< where the user gave ε, for messages
};

}  // namespace quasi::thermal
