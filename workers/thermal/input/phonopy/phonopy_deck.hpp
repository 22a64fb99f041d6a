#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "workers/thermal/input/control/control.hpp"
#include "workers/thermal/input/force_constants/force_constants.hpp"
#include "workers/thermal/model/crystal.hpp"

/// Begin here: workers/thermal/input/phonopy reads decks of phonopy and phono3py. phonopy_cells.hpp
/// reads the cells and phonopy_force_constants.hpp the force constants.
namespace quasi::thermal {

/// A deck in the layout of phonopy and phono3py (docs/theory/thermal.md 1.6):
///
/// - `phono3py.yaml`, `phono3py_disp.yaml`, `phonopy.yaml` or `phonopy_disp.yaml`: cells, masses,
///   Born charges.
/// - `fc2.hdf5` or `force_constants.hdf5`: [n_p or n_s][n_s][3][3], eV/Å².
/// - `fc3.hdf5`: [n_p or n_s][n_s][n_s][3][3][3], eV/Å³; without it, harmonic quantities only.
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
  std::optional<SparseForceConstants> third;
  std::vector<std::filesystem::path> files;  ///< everything that was read, for the deck's digest
};

/// True for a directory without CONTROL that holds one of the yaml files above, or POSCAR and fc2.
bool is_phonopy_deck(const std::filesystem::path& directory);

/// @throws InvalidInput naming file, key or dataset, what was found and the remedy.
PhonopyDeck read_phonopy_deck(const std::filesystem::path& directory,
                              const std::vector<NamelistAssignment>& overrides);

}  // namespace quasi::thermal
