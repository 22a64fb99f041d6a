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
#include "workers/io/result_root.hpp"
#include "workers/io/settings.hpp"

namespace quasi {

/// Input of a task: a deck and the user's settings, which override it in the order given. The deck
/// is a directory in the layout of another program, or a TOML file.
struct DeckSource {
  std::filesystem::path path;
  std::vector<Setting> settings;
};

/// Options of one run beside its deck.
struct RunOptions {
  DeckSource deck;
  std::vector<Device> devices;                 ///< at least one; all belong to one back end
  std::filesystem::path output_directory;      ///< exists; gets result.h5 and summary.json
  std::filesystem::path checkpoint_directory;  ///< exists; the run resumes from its newest
                                               ///< checkpoint
  std::int64_t memory_budget_bytes = 0;        ///< per device; 0: the kind's own default
  std::vector<std::string> exports;            ///< e.g. "bte"
  InputRecord inputs;                          ///< what result.h5 keeps of the deck
  /// Processes that share this job. Each runs the task on its own devices, and rank 0 alone writes.
  Ranks* ranks = &one_rank();
};

/// Largest number of devices that one process of a job may use.
inline constexpr int kMaxDevices = 64;

/// One kind of job. It loads the deck, calls the solver and writes results. It has no state, so
/// every call stands alone.
class Task {
 public:
  virtual ~Task() = default;

  /// Reads the deck with every check that needs no solving, and plans the work. @return {"ok",
  /// "warnings"[], "plan"{processes…, memory_bytes, seconds_estimate}, …} @throws InvalidInput
  /// naming field or line, value, limit and remedy.
  virtual nlohmann::json validate(const DeckSource& deck, const Device& device) const = 0;

  /// Runs to the end and writes result.h5 (atomically) into the output directory. @return the
  /// `summary` of --json: plain numbers and lists, with units at the end of the names.
  virtual nlohmann::json run(const RunOptions& options, Progress& progress) const = 0;

  /// Returns names and wildcards of the files that a deck directory of this kind may hold, in the
  /// syntax of fnmatch. No result file matches one of them.
  virtual std::vector<std::string> deck_file_patterns() const = 0;

  /// Returns the names of files that mark a folder as an input. If a deck names a folder which has
  /// one of these files, it reads all files of the folder. A kind that reads no folders returns an
  /// empty list.
  virtual std::vector<std::string> marks_of_folders() const { return {}; }

  /// Returns the formats that run() can write in addition to result.h5.
  virtual std::vector<std::string> exports() const { return {}; }

  /// Returns the number of devices that one run can use. Most kinds use one.
  virtual int max_devices() const { return 1; }

  /// Formats a summary that run() returned as a table for people.
  virtual std::string table(const nlohmann::json& summary) const = 0;
};

}  // namespace quasi
