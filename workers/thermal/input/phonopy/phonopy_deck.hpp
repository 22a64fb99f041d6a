#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "workers/thermal/input/control/control.hpp"
#include "workers/thermal/input/force_constants/force_constants.hpp"
#include "workers/thermal/input/phonopy/phonopy_cells.hpp"
#include "workers/thermal/model/crystal.hpp"

/// Begin here: workers/thermal/input/phonopy reads decks of phonopy and phono3py. phonopy_cells.hpp
/// reads the cells and phonopy_force_constants.hpp the force constants.
namespace quasi::thermal {

/// A deck in the layout of phonopy and phono3py (docs/theory/thermal.md 1.6):
///
/// - `phono3py.yaml`, `phonopy.yaml`, or with `_disp` or `_params`: cells, masses, Born charges.
/// - `fc2.hdf5`, `force_constants.hdf5` or the text `FORCE_CONSTANTS`: [n_p or n_s][n_s][3][3].
/// - `fc3.hdf5`: [n_p or n_s][n_s][n_s][3][3][3], or `FORCE_CONSTANTS_3RD`.
/// - `fc4.hdf5`: [n_p or n_s][n_s][n_s][n_s][3][3][3][3], or `FORCE_CONSTANTS_4TH`, with four
///   phonons. Sparse files number the atoms of the primitive cell.
/// - `BORN`: dielectric tensor and charges of the symmetry-distinct atoms.
/// - `POSCAR`: the primitive cell, where there is no yaml; `scell` then says how often it is
///   repeated.
///
/// Mesh, temperatures and other keys that such a deck does not hold come from `overrides`, in the
/// keys of CONTROL; `ngrid` is required. Isotopes default to the natural composition, masses are
/// the yaml's.
struct PhonopyDeck {
  Control control;
  Crystal crystal;
  SecondOrder second;
  std::optional<SparseForceConstants> third;  ///< without it only harmonic quantities are asked for
  std::string third_name;                     ///< of its file
  std::optional<SparseForceConstants> fourth;  ///< with four phonons
  std::string fourth_name;                     ///< of its file
  std::vector<std::filesystem::path> files;    ///< everything that was read, for the deck's digest
};

/// True for a directory without CONTROL that holds one of the yaml files above, or POSCAR and fc2.
bool is_phonopy_deck(const std::filesystem::path& directory);

/// @throws InvalidInput naming file, key or dataset, what was found and the remedy.
PhonopyDeck read_phonopy_deck(const std::filesystem::path& directory,
                              const std::vector<NamelistAssignment>& overrides);

/// Returns the crystal of a primitive cell and its charges in the words of CONTROL, so that one
/// parser checks every key. `repeats` becomes `scell`. The text has neither mesh nor temperatures.
std::string control_text(const PhonopyCells& cells, const Index3& repeats = {1, 1, 1});

/// @throws InvalidInput unless the settings hold 'ngrid', which decks without CONTROL need.
void require_mesh(const std::vector<NamelistAssignment>& overrides);

}  // namespace quasi::thermal
