#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "workers/thermal/input/control/control.hpp"
#include "workers/thermal/model/crystal.hpp"
#include "workers/thermal/model/force_constants.hpp"

/// Begin here: workers/thermal/input/tdep reads decks of TDEP. tdep_force_constants.hpp reads the
/// files of constants.
namespace quasi::thermal {

/// A deck in the layout of TDEP (docs/theory/thermal.md 1.8). Each file may begin with `infile.` or
/// `outfile.`:
///
/// - `infile.ucposcar`: the cell of the constants.
/// - `infile.forceconstant`, `…_thirdorder`, `…_fourthorder`.
/// - `infile.isotopes`, `infile.lotosplitting`, `infile.meta`, where they exist.
///
/// Mesh and temperatures come from `overrides`, in the keys of CONTROL; `ngrid` is required.
struct TdepDeck {
  Control control;
  Crystal crystal;
  SecondOrder second;
  std::optional<SparseForceConstants> third, fourth;
  std::vector<std::filesystem::path> files;  ///< everything that was read, for the deck's digest
  std::vector<std::string> warnings;
};

/// True for a directory without CONTROL that holds a cell and second-order constants of TDEP.
bool is_tdep_deck(const std::filesystem::path& directory);

/// @throws InvalidInput naming file, line, what was expected and the remedy.
TdepDeck read_tdep_deck(const std::filesystem::path& directory,
                        const std::vector<NamelistAssignment>& overrides);

/// Reads the second order of a deck with CONTROL and `tdep` = .true., and lets the crystal have the
/// charges of the file where CONTROL gives none.
SecondOrder read_tdep_second_order_of(const std::filesystem::path& directory, Control& control,
                                      Crystal& crystal, std::vector<std::string>& warnings);

/// Returns the file `infile.NAME` or `outfile.NAME`; empty if there is neither.
std::filesystem::path tdep_file(const std::filesystem::path& directory, const std::string& name);

}  // namespace quasi::thermal
