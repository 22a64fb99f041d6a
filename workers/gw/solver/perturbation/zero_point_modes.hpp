#pragma once

#include <vector>

#include "workers/gw/model/mean_field.hpp"
#include "workers/gw/model/phonon_modes.hpp"

namespace quasi::gw {

/// Holds the phonon modes at one q of the crystal of a job, with its order of atoms.
struct ZeroPointModes {
  std::vector<double> energy_ev;  ///< ħω, [mode]
  std::vector<bool> acoustic;     ///< rigid shifts, which have no zero-point amplitude, [mode];
                                  ///< none at q other than 0
  std::vector<int> first_of_set;  ///< first mode of the degenerate set, [mode]
  std::vector<double> mass_amu;   ///< [atom]
  std::vector<Cplx> eigenvector;  ///< [mode][3·atom+α]; cell R has the factor e^{iq·R}
  Vec3 q{};                       ///< reduced, in [0, 1)

  /// Returns the number of modes.
  std::size_t n_modes() const { return energy_ev.size(); }
  /// Returns the displacement √(ħ/(2M_a ω)) e of one atom along one axis, Bohr
  /// (docs/theory/gw.md 14.6).
  /// @pre the mode is not acoustic
  Cplx displacement_bohr(std::size_t mode, std::size_t atom, std::size_t axis) const;
  /// Returns √(ħ/(2M ω)) with the mass M of all atoms of the cell, Bohr.
  /// @pre the mode is not acoustic
  double cell_amplitude_bohr(std::size_t mode) const;
};

/// Checks phonon modes and transforms them to the crystal of a job. Cells may differ in their
/// choice of lattice vectors, origin and order of atoms, by inversion, and by 2 % of a length.
/// @throws InvalidInput if the crystals differ, the modes are not complete or not orthonormal, an
/// optical mode is unstable, or the frequencies do not fit the masses. The message gives file,
/// field, value, limit and remedy.
ZeroPointModes zero_point_modes(const PhononModes& modes, const Crystal& crystal);

/// Returns the modes at the wave vector q, up to a reciprocal lattice vector.
/// @param listed  modes at several wave vectors of their own cells
/// @throws InvalidInput if the list holds no modes at q, and as zero_point_modes() does
ZeroPointModes zero_point_modes_at(const std::vector<PhononModes>& listed, const Vec3& q,
                                   const Crystal& crystal);

}  // namespace quasi::gw
