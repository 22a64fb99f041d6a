#include "client/engine/output_folder.hpp"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "client/failure.hpp"
#include "client/session/durable_file.hpp"

namespace quasi::client {
namespace {

namespace fs = std::filesystem;

constexpr const char* kListName = ".quasi-run.json";
constexpr const char* kAsideName = ".quasi-replaced";
constexpr const char* kCheckpointName = "checkpoint";
constexpr std::size_t kListLimitBytes = 16 << 20;

/// The list of an earlier run.
struct EarlierRun {
  bool is_complete = false;
  std::set<fs::path> files;
};

std::optional<EarlierRun> read_list(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_regular_file(folder / kListName, error)) return std::nullopt;
  const auto list =
      nlohmann::json::parse(read_whole(folder / kListName, kListLimitBytes), nullptr, false);
  EarlierRun run;
  try {
    run.is_complete = list.at("complete").get<bool>();
    for (const auto& name : list.at("files")) {
      const fs::path path = fs::path(name.get<std::string>()).lexically_normal();
      if (path.is_relative() && *path.begin() != "..") run.files.insert(path);
    }
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
  return run;
}

bool holds_results(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "summary.json", ignored) || fs::exists(folder / "result.h5", ignored);
}

/// True if the deck is the folder itself.
bool is_deck(const fs::path& folder, const fs::path& deck) {
  std::error_code error;
  return fs::is_directory(deck, error) && fs::equivalent(deck, folder, error);
}

void move_file(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_directories(to.parent_path(), error);
  fs::rename(from, to, error);
  if (error && error != std::errc::no_such_file_or_directory)
    throw Failure(ExitStatus::kLocalFile, "cannot move '" + from.string() + "': " + error.message(),
                  "choose another folder with -d");
}

void remove_empty_folders(const fs::path& folder) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored))
    if (entry.is_directory(ignored) && !entry.is_symlink(ignored)) {
      remove_empty_folders(entry.path());
      fs::remove(entry.path(), ignored);
    }
}

}  // namespace

OutputFolder::OutputFolder(fs::path folder, const fs::path& deck, bool replace)
    : folder_(std::move(folder)) {
  std::error_code ignored;
  is_new_ = !fs::exists(folder_, ignored);
  if (is_new_) return;
  if (is_deck(folder_, deck))
    throw Failure(ExitStatus::kConflict,
                  "'" + folder_.string() + "' is the deck; results are not mixed with it",
                  "choose another folder: -d DIR");
  const std::optional<EarlierRun> earlier = read_list(folder_);
  const bool is_used = holds_results(folder_) && (!earlier || earlier->is_complete);
  if (is_used && !replace)
    throw Failure(ExitStatus::kConflict,
                  "'" + folder_.string() + "' holds the results of an earlier run",
                  "choose another folder: -d DIR; or replace the results: --force");
  if (is_used && !earlier)
    throw Failure(ExitStatus::kConflict,
                  "'" + folder_.string() + "' holds results that quasi run did not write",
                  "choose another folder: -d DIR; --force replaces results of quasi run alone");
  // An interrupted run continues from its checkpoint and overwrites its own files.
  const bool continues = earlier && !earlier->is_complete &&
                         !fs::is_empty(folder_ / kCheckpointName, ignored) && !ignored;
  if (earlier && !continues) set_aside(earlier->files);
  before_ = files_in_folder();
  if (continues)
    for (const fs::path& file : earlier->files) before_.erase(file);
}

OutputFolder::~OutputFolder() {
  if (is_finished_) return;
  try {
    finish(ExitStatus::kUnexpected);
  } catch (...) {  // The failure that ends the run is reported instead.
  }
}

std::set<fs::path> OutputFolder::files_in_folder() const {
  std::set<fs::path> found;
  std::error_code error;
  fs::recursive_directory_iterator at(folder_, error);
  for (const fs::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
    const fs::path name = at->path().lexically_relative(folder_);
    const std::string first = name.begin()->string();
    if (first == kCheckpointName || first == kAsideName || first == kListName)
      at.disable_recursion_pending();
    else if (!fs::is_directory(at->symlink_status()))
      found.insert(name);
  }
  return found;
}

void OutputFolder::set_aside(const std::set<fs::path>& names) {
  std::error_code ignored;
  fs::remove_all(folder_ / kAsideName, ignored);
  for (const fs::path& name : names) move_file(folder_ / name, folder_ / kAsideName / name);
  move_file(folder_ / kListName, folder_ / kAsideName / kListName);
}

void OutputFolder::give_back() const {
  std::error_code error;
  std::vector<fs::path> names;
  const fs::path aside = folder_ / kAsideName;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(aside, error))
    if (!entry.is_directory(error)) names.push_back(entry.path().lexically_relative(aside));
  for (const fs::path& name : names) move_file(aside / name, folder_ / name);
}

void OutputFolder::write_list(bool is_complete) const {
  nlohmann::ordered_json list{{"schema", "quasi.run-files.v1"},
                              {"complete", is_complete},
                              {"files", nlohmann::ordered_json::array()}};
  for (const fs::path& name : files_) list["files"].push_back(name.generic_string());
  write_durably(folder_ / kListName, list.dump(1) + "\n");
}

void OutputFolder::finish(ExitStatus status) {
  is_finished_ = true;
  std::error_code ignored;
  if (!fs::is_directory(folder_, ignored)) return;
  const std::set<fs::path> now = files_in_folder();
  std::set_difference(now.begin(), now.end(), before_.begin(), before_.end(),
                      std::inserter(files_, files_.end()));
  const bool was_refused = status == ExitStatus::kInvalidInput || status == ExitStatus::kUsage;
  if (was_refused && files_.empty()) give_back();
  fs::remove_all(folder_ / kAsideName, ignored);
  if (!files_.empty()) return write_list(status == ExitStatus::kOk);
  if (is_new_) {
    remove_empty_folders(folder_);
    fs::remove(folder_, ignored);  // A folder that holds a checkpoint stays.
  }
}

}  // namespace quasi::client
