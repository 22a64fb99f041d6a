#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "workers/thermal/input/control/control.hpp"
#include "workers/thermal/input/deck/constants_source.hpp"
#include "workers/thermal/input/force_constants/force_constants.hpp"
#include "workers/thermal/model/lattice_model.hpp"

/// Begin here: workers/thermal/input reads decks. deck/ joins the parts of a deck and builds its
/// crystal, and reads decks in TOML. control/ reads the keys of CONTROL, from namelists and
/// settings. force_constants/ reads the files of ShengBTE, FourPhonon and Quantum ESPRESSO, and
/// phonopy/ those of phonopy and phono3py, and tdep/ those of TDEP.
namespace quasi::thermal {

/// A deck as it was read and checked: the model that it describes and its CONTROL.
struct Deck : LatticeModel {
  Control control;
  /// Fourth order that renormalises the phonons, with `renormalise`. `fourth_order` scatters them.
  std::optional<SparseForceConstants> renormalising_order;
  std::string digest_sha256;  ///< of the files read, in a fixed order, and of the settings
};

/// Reads a deck: a directory with CONTROL (or phonopy files) and the force constants it asks for,
/// or a TOML deck (toml_deck.hpp) as a file or as DIRECTORY/deck.toml. Checks the parts against
/// each other and finds the symmetry.
/// @param source  computes the constants of decks with the key `forces`; without it they are
/// refused
/// @throws InvalidInput naming file, field or line, value, limit and remedy.
Deck read_deck(const std::filesystem::path& path, const std::vector<Setting>& settings,
               const ConstantsSource& source = {});

}  // namespace quasi::thermal
