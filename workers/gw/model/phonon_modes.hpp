#pragma once

#include <complex>
#include <string>
#include <vector>

#include "workers/gw/physics/crystal.hpp"

namespace quasi::gw {

/// One atom of the cell of a phonon calculation.
struct VibratingAtom {
  int atomic_number = 0;
  double mass_amu = 0.0;
  Vec3 position{};  ///< in units of the lattice vectors
};

/// Holds the phonon modes at one q, in the cell and the order of atoms of their file.
struct PhononModes {
  std::string file;     ///< name for messages
  Vec3 q{};             ///< in units of the reciprocal vectors of that lattice
  Mat3 lattice_bohr{};  ///< row i: lattice vector i
  std::vector<VibratingAtom> atoms;
  std::vector<double> energy_ev;  ///< ħω, [mode]; negative where ω² < 0
  /// Eigenvectors of the dynamical matrix, √M u, [mode][3κ+α], of unit length. The cell R moves
  /// with the factor e^{iq·R}.
  std::vector<std::complex<double>> eigenvector;

  std::size_t n_modes() const { return energy_ev.size(); }
};

}  // namespace quasi::gw
