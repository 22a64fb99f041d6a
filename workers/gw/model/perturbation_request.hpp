#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "workers/gw/model/phonon_modes.hpp"

namespace quasi::gw {

/// Holds the folders of two calculations in which one atom is displaced by +h and by −h along a
/// Cartesian axis. Each folder holds the files VSC, VKB and, optionally, VXC of BerkeleyGW. The
/// cell is that of WFN or a supercell of it.
struct DisplacedFolders {
  std::filesystem::path forth, back;  ///< folders with +h and with −h
};

/// Holds the table [perturbation] of a deck. The job calculates the first order of Σ in the
/// displacements that it names.
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
  /// Wave vectors other than 0, reduced. Each is the difference of two k-points, in [0, 1). With
  /// files, request_on_grid() makes it so from the numbers of the deck (wave_vector_elements.hpp).
  std::vector<Vec3> wave_vectors;
  bool at_gamma = true;      ///< true if the displacements at q = 0 are wanted
  bool all_lengths = false;  ///< as in DisplacementWave (atom_displacement.hpp), for q = 0
  /// Phonon modes whose first order the job writes too; absent: none.
  std::optional<PhononModes> modes;
  std::vector<PhononModes> modes_at_q;  ///< those of the other wave vectors, in their order
  /// Born charge Z*_ij of each atom of the cell, e, where i is the direction of the electric field
  /// and j that of the displacement. With an empty list the long-range part of the elements is not
  /// separated (long_range.hpp).
  std::vector<Mat3> born_charges;
  Mat3 dielectric_tensor{};  ///< ε∞ of the electrons; 0 without Born charges
};

}  // namespace quasi::gw
