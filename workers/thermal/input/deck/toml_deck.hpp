#pragma once

#include <filesystem>
#include <vector>

#include "workers/thermal/input/control/namelist.hpp"

namespace quasi::thermal {

/// A thermal deck in TOML:
///
///   kind = "thermal"
///   directory = "silicon"   # of the force constants, relative to this file
///
///   ngrid = [12, 12, 12]    # keys of CONTROL, at the top or in tables named as its groups
///
///   T = [200, 300, 400]
///
///   [job]                   # name, priority, limits: read by the client
///
/// Lists may be nested; the innermost runs over a key's first index, so lattvec = [a1, a2, a3].
/// The keys replace those of DIRECTORY/CONTROL or of a phonopy deck there. Without either, the file
/// must give all required keys.
struct TomlDeck {
  std::filesystem::path directory;
  std::vector<NamelistAssignment> assignments;  ///< in the order of the lines
};

/// @throws InvalidInput naming file, line, key and, for an unknown key, the nearest known one.
TomlDeck read_toml_deck(const std::filesystem::path& file);

}  // namespace quasi::thermal
