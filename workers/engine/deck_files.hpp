#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace quasi {

/// One file that a deck reads.
struct DeckFile {
  std::filesystem::path path;  ///< relative to the deck's directory, or absolute, as the deck names
                               ///< it
  int line = 0;                ///< line of the deck that names it; 0 for a file found by its name
};

/// Lists the files that a deck of this kind reads, so that a client can send them to another
/// machine.
///
/// A deck directory reads the files in it whose names match the kind's patterns. A TOML deck reads
/// itself, each existing file that one of its text values names, the matching files of the
/// directory that its top-level `directory` names, and all files of a folder that the kind reads
/// as a whole (Task::marks_of_folders). The list is not filtered: the caller decides on links,
/// paths outside the deck and sizes.
///
/// @throws InvalidInput if there is no such deck, if it cannot be parsed, or if a directory holds
/// no file of the kind.
std::vector<DeckFile> deck_files(const std::string& kind, const std::filesystem::path& deck);

/// Returns the document that `quasi-engine files` prints: {"schema", "kind", "files": [{"path",
/// "line"}]}.
nlohmann::json describe_deck_files(const std::string& kind, const std::filesystem::path& deck);

}  // namespace quasi
