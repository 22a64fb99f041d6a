#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace quasi::client {

/// A local file and its slot below the attempt's input directory.
struct LocalInput {
  std::string slot;
  std::filesystem::path path;
  std::uint64_t size_bytes = 0;
};

/// A deck on this machine with the files to be sent.
struct Deck {
  std::string slot;                ///< DeckWork.deck: a directory, or one TOML file
  std::vector<LocalInput> inputs;  ///< in the order of their slots
};

/// Collects the files of a deck as listed by `quasi-engine files`.
///
/// Without an engine on this machine, a directory contributes every file below it. A TOML file
/// contributes itself, each file that one of its text values names, and the files of each directory
/// that it names. Hidden files are never sent.
///
/// @throws Failure (kInvalidInput) for symbolic links, names that cannot be slots, files outside
/// the deck's directory, empty decks, more than 64 files or a file above 64 GiB. The text names the
/// file and the remedy.
Deck collect_deck(const std::string& kind, const std::filesystem::path& path);

/// Reads one `--input slot=path`. @throws Failure (kUsage, kInvalidInput, kLocalFile).
LocalInput local_input(const std::string& slot, const std::filesystem::path& path);

/// The reason why a text cannot be a slot; "" if it can.
std::string slot_problem(const std::string& slot);

}  // namespace quasi::client
