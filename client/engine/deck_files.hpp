#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace quasi::client {

/// A file of a deck, as the deck names it.
struct NamedFile {
  std::filesystem::path path;  ///< Relative to the deck's directory, or absolute.
  std::string origin;          ///< "FILE:LINE" that names it; "" for a file found by its name.
};

/// Asks `quasi-engine files` which files a deck reads. Returns nullopt if this machine has no
/// engine.
/// @throws Failure with the engine's own sentence if it refuses the deck.
std::optional<std::vector<NamedFile>> files_by_engine(const std::string& kind,
                                                      const std::filesystem::path& deck);

}  // namespace quasi::client
