#pragma once

#include <filesystem>

#include "workers/thermal/input/deck/deck.hpp"
#include "workers/thermal/solver/calculation/solve_case.hpp"

namespace quasi::thermal {

/// Writes the BTE.* text files of docs/theory/thermal.md 1.7 into a directory (`--export bte`).
/// Mode files are band-major: all irreducible points of branch 1, then of branch 2, …
/// @throws StorageError naming the file.
void write_bte_files(const Deck& deck, const SolvedCase& solved,
                     const std::filesystem::path& directory);

}  // namespace quasi::thermal
