#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "workers/gw/model/phonon_modes.hpp"

namespace quasi::gw {

/// Folders with the files VSC, VKB and VXC of two crystals, in which one atom is displaced by +h
/// and by −h along a Cartesian axis. The crystals are that of WFN or a supercell of it.
struct DisplacedFolders {
  std::filesystem::path forth, back;
};

/// Table [perturbation] of a deck: displacements whose first order of Σ the job calculates.
struct PerturbationRequest {
  bool wanted = false;             ///< true if the deck has the table
  std::vector<int> atoms;          ///< counted from 1; empty: all atoms of the cell
  std::string directions = "xyz";  ///< letters of the Cartesian directions
  double check_step_bohr = 0.0;    ///< step of finite displacements that check ∂Σ; 0: no check
  /// Displaced calculations of a mean field from files; empty: a built-in crystal is displaced.
  std::vector<DisplacedFolders> folders;
  /// True if first orders of states hold the states beyond the bands of Σ, by linear equations.
  bool sternheimer = false;
  double response_residual = 1e-11;  ///< largest relative residual of these equations
  /// Wave vectors other than 0, reduced: differences of two k-points in [0, 1). Those of files are
  /// as in the deck until request_on_grid() (wave_vector_elements.hpp).
  std::vector<Vec3> wave_vectors;
  bool at_gamma = true;      ///< true if the displacements at q = 0 are wanted
  bool all_lengths = false;  ///< as in DisplacementWave (atom_displacement.hpp), for q = 0
  /// Phonon modes whose first order the job writes too; absent: none.
  std::optional<PhononModes> modes;
  std::vector<PhononModes> modes_at_q;  ///< those of the other wave vectors, in their order
  /// Z* of each atom of the cell, e: the first index is that of the field. Empty: the long-range
  /// part of the elements is not separated (long_range.hpp).
  std::vector<Mat3> born_charges;
  Mat3 dielectric_tensor{};  ///< ε∞; set with the charges
};

}  // namespace quasi::gw
