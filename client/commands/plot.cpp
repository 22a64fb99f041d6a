#include "client/commands/plot.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "client/commands/fetch.hpp"
#include "client/engine/engine_process.hpp"
#include "client/failure.hpp"
#include "client/input/job_ids.hpp"
#include "client/input/sweeps/set_ids.hpp"

namespace quasi::client {
namespace {

namespace fs = std::filesystem;

/// The interpreter: QUASI_PYTHON, or Debian's python3. A python3 of the user's own environment may
/// lack the packages that the module needs.
fs::path python() {
  if (const char* named = std::getenv("QUASI_PYTHON"); named != nullptr && *named != '\0')
    return named;
  return "/usr/bin/python3";
}

/// A build tree keeps the module beside the folder of the programs, because the module is not
/// installed.
void prefer_module_of_build_tree() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const fs::path staged = self.parent_path().parent_path() / "python";
  if (error || !fs::exists(staged / "quasi" / "__init__.py", error)) return;
  const char* before = std::getenv("PYTHONPATH");
  const std::string path =
      staged.string() + (before != nullptr && *before != '\0' ? std::string(":") + before : "");
  ::setenv("PYTHONPATH", path.c_str(), 1);
}

void require_module() {
  if (const std::string problem = drawing_problem(); !problem.empty())
    throw Failure(
        ExitStatus::kEngineUnavailable, problem,
        "install it: apt install python3-quasi; or name another interpreter: QUASI_PYTHON");
}

/// True for a word that names a job: an id, a prefix of one, or `last`. The first word is always a
/// result, so any name of a job may stand there; later words may be figures.
bool names_a_job(const std::string& word, bool is_first) {
  return is_first || word == "last" || word.starts_with("j_") || could_be_set(word);
}

/// The jobs of a word. A word that is neither an id nor a known name is left to the module, which
/// says that no such file exists.
std::vector<std::string> ids_or_none(Session& session, const std::string& word) {
  try {
    return resolve_job_ids(session, {word});
  } catch (const Failure& failure) {
    const bool is_id = word == "last" || word.starts_with("j_");
    const bool is_unknown =
        failure.status == ExitStatus::kUnreachable || failure.status == ExitStatus::kNotFound;
    if (is_id || !is_unknown) throw;
    return {};
  }
}

/// The folder that the results of a job were fetched into.
std::string fetched_folder(Session& session, const std::string& id) {
  const fs::path folder = session.state.directory() / "results" / id;
  std::error_code ignored;
  if (!fs::exists(folder / "result.h5", ignored))
    fetch(session, {.jobs = {id},
                    .directory = folder.string(),
                    .artifacts = {},
                    .force = true,
                    .silent = true});
  return folder.string();
}

/// The folders of the jobs of a set that have results, and a label for each: the values of the
/// axes.
PlotOptions options_of_set(Session& session, const v1::JobSet& set, const PlotOptions& options) {
  PlotOptions all = options;
  all.words.clear();
  std::size_t without = 0;
  for (const v1::Job& job : jobs_of_set(session, set.id())) {
    if (job.state() != v1::JOB_STATE_SUCCEEDED) {
      ++without;
      continue;
    }
    all.words.push_back(fetched_folder(session, job.id()));
    if (!options.labels.empty()) continue;
    std::string label;
    for (const std::string& key : keys_of(set))
      label += (label.empty() ? "" : ", ") + key + " = " + value_in(job, key);
    all.labels.push_back(label);
  }
  if (without > 0)
    session.console.note(std::to_string(without) + " jobs of the set have no results");
  if (all.words.empty())
    throw Failure(ExitStatus::kConflict, "no job of set " + set.id() + " has results",
                  "see its state: quasi show " + set.id());
  all.words.insert(all.words.end(), options.words.begin() + 1, options.words.end());
  return all;
}

/// Replaces every job among the words by the folder that its results were fetched into.
std::vector<std::string> replace_jobs_by_folders(Session& session,
                                                 const std::vector<std::string>& words) {
  std::vector<std::string> places;
  std::error_code ignored;
  for (const std::string& word : words) {
    const bool is_first = &word == &words.front();
    if (fs::exists(word, ignored) || !names_a_job(word, is_first)) {
      places.push_back(word);
      continue;
    }
    const std::vector<std::string> ids = ids_or_none(session, word);
    if (ids.empty()) places.push_back(word);
    for (const std::string& id : ids) places.push_back(fetched_folder(session, id));
  }
  return places;
}

/// Draws results and jobs.
ExitStatus start_drawing(Session& session, const std::string& command, const PlotOptions& options) {
  std::vector<std::string> arguments{"-m", "quasi", command};
  for (const std::string& word : replace_jobs_by_folders(session, options.words))
    arguments.push_back(word);
  if (!options.output.empty()) {
    arguments.emplace_back("--output");
    arguments.push_back(options.output);
  }
  for (const std::string& label : options.labels) {
    arguments.emplace_back("--label");
    arguments.push_back(label);
  }
  if (options.list) arguments.emplace_back("--list");
  switch (run_engine(python(), arguments).status) {
    case 0:
      return ExitStatus::kOk;
    case 2:
      return ExitStatus::kUsage;
    case 5:
      return ExitStatus::kLocalFile;
    default:
      return ExitStatus::kInvalidInput;
  }
}

ExitStatus start_module(Session& session, const std::string& command, const PlotOptions& options) {
  if (options.words.empty())
    throw Failure(ExitStatus::kUsage, "no result was given",
                  "usage: quasi " + command + " FOLDER|RESULT|JOB");
  require_module();
  // A folder with the name of a set is a result.
  std::error_code ignored;
  const std::string& first = options.words.front();
  if (!fs::exists(first, ignored) && (first == "last" || could_be_set(first)))
    if (const auto set = only_set(session, {first}))
      return start_drawing(session, command, options_of_set(session, *set, options));
  return start_drawing(session, command, options);
}

}  // namespace

std::string drawing_problem() {
  prefer_module_of_build_tree();
  if (::access(python().c_str(), X_OK) == 0 &&
      capture_engine(python(), {"-c", "import quasi.plot, matplotlib"}).end.status == 0)
    return "";
  return "the Python module that draws is missing for " + python().string();
}

ExitStatus plot(Session& session, const PlotOptions& options) {
  return start_module(session, "plot", options);
}

ExitStatus report(Session& session, const PlotOptions& options) {
  return start_module(session, "report", options);
}

}  // namespace quasi::client
