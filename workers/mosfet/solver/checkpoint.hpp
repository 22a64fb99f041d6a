#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "workers/mosfet/solver/point_result.hpp"
#include "workers/mosfet/solver/point_progress.hpp"

namespace quasi::mosfet {

/// What a sweep has done so far.
struct SweepSnapshot {
  std::map<int, PointResult> finished;       ///< by point
  std::map<int, PointProgress> running;      ///< by chain
  std::map<int, PointState> chain_state;     ///< last finished state of a chain that waits
};

/// A text that two decks share if and only if one may resume the other's sweep.
std::string resume_key(const Deck& deck);

void write_checkpoint(const std::filesystem::path& path, const std::string& key,
                      const SweepSnapshot& snapshot);
/// @return nothing if the file is damaged or belongs to another deck or version.
std::optional<SweepSnapshot> read_checkpoint(const std::filesystem::path& path, const std::string& key);

}  // namespace quasi::mosfet
