#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "workers/backend/device/device.hpp"
#include "workers/backend/progress.hpp"
#include "workers/backend/ranks/ranks.hpp"
#include "workers/io/settings.hpp"

namespace quasi {

/// What a task reads: a deck (a directory in a field's own layout, or a TOML file) and the user's
/// overrides, in the order given.
struct DeckSource {
  std::filesystem::path path;
  std::vector<Setting> settings;
};

/// What one run is given beside its deck.
struct RunOptions {
  DeckSource deck;
  std::vector<Device> devices;                 ///< at least one; all of one back end
  std::filesystem::path output_directory;      ///< exists; result.h5 and summary.json go here
  std::filesystem::path checkpoint_directory;  ///< exists; newest checkpoint here is resumed from
  std::int64_t memory_budget_bytes = 0;        ///< per device; 0: the kind's own default
  std::vector<std::string> exports;            ///< e.g. "bte"
  /// The processes that share this job; each runs the task on its own devices, and rank 0 alone
  /// writes.
  Ranks* ranks = &one_rank();
};

/// Devices that one process of a job may name.
inline constexpr int kMaxDevices = 64;

/// One kind of job. Thin: load, solve, write. Stateless: every call stands alone.
class Task {
 public:
  virtual ~Task() = default;

  /// Reads the deck with every check that needs no solving, and plans.
  /// @return {"ok", "warnings"[], "plan"{processes…, memory_bytes, seconds_estimate}, …}
  /// @throws InvalidInput naming field or line, value, limit and remedy.
  virtual nlohmann::json validate(const DeckSource& deck, const Device& device) const = 0;

  /// Runs to the end and writes result.h5 (atomically) into the output directory.
  /// @return the `summary` of --json: plain numbers and lists, names with units at the end.
  virtual nlohmann::json run(const RunOptions& options, Progress& progress) const = 0;

  /// Names and wildcards of the files that a deck directory of this kind may hold, as for fnmatch.
  /// Results that lie in the same directory match none of them.
  virtual std::vector<std::string> deck_file_patterns() const = 0;

  /// The further formats that run() can write, beside result.h5.
  virtual std::vector<std::string> exports() const { return {}; }

  /// How many devices one run can use; most kinds use one.
  virtual int max_devices() const { return 1; }

  /// The table a person wants to see, from a summary that run() returned.
  virtual std::string table(const nlohmann::json& summary) const = 0;
};

}  // namespace quasi
