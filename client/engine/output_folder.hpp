#pragma once

#include <filesystem>
#include <set>

#include "client/exit_status.hpp"

namespace quasi::client {

/// The folder that `quasi run` writes its results into. It protects the results of an earlier run,
/// and with `replace` it removes them, so that a folder never holds files of two runs.
///
/// The file `.quasi-run.json` in the folder lists the files of the run. Files that stood in the
/// folder before the run are not on the list and are never removed.
class OutputFolder {
 public:
  /// Prepares the folder for a run of `deck`.
  ///
  /// @param replace  removes the results of an earlier run of `quasi run`
  /// @throws Failure (kConflict) if the folder holds results and `replace` is false, if it holds
  /// results that `quasi run` did not write, or if it is the deck
  OutputFolder(std::filesystem::path folder, const std::filesystem::path& deck, bool replace);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  /// Lists the files of the run once it has ended. A run that was refused before it computed gives
  /// the earlier results back.
  void finish(ExitStatus status);

  const std::filesystem::path& path() const { return folder_; }
  /// The names of the run's files, without those of its checkpoint. Empty before `finish`.
  const std::set<std::filesystem::path>& files() const { return files_; }

 private:
  std::set<std::filesystem::path> files_in_folder() const;
  void write_list(bool is_complete) const;
  void set_aside(const std::set<std::filesystem::path>& names);
  void give_back() const;

  std::filesystem::path folder_;
  bool is_new_ = false;                     ///< the folder did not exist
  bool is_finished_ = false;                ///< `finish` was called
  std::set<std::filesystem::path> before_;  ///< files that stood in the folder before the run
  std::set<std::filesystem::path> files_;
};

}  // namespace quasi::client
