#include "client/run.hpp"

#include <filesystem>

#include "client/engine_process.hpp"
#include "client/job_file.hpp"
#include "proto/wire/validate.hpp"

namespace quasi::client {
namespace {

/// Kind and deck of the command line; a TOML file says its kind itself, a job file names both.
struct Target {
  std::string kind;
  std::string deck;
  std::vector<v1::Setting> settings;
  std::vector<std::string> exports;
};

Target target_of(const RunCommandOptions& options) {
  if (options.words.size() == 2) return {.kind = options.words[0], .deck = options.words[1]};
  if (options.words.size() != 1)
    throw Failure(ExitStatus::kUsage, "one deck is run at a time",
                  "usage: quasi run KIND DECK, or quasi run DECK.toml");
  const std::string& word = options.words.front();
  std::error_code ignored;
  for (const std::string& kind : wire::all_kinds())
    if (word == kind && !std::filesystem::exists(word, ignored))
      throw Failure(ExitStatus::kUsage, "'" + word + "' is a kind of job; which deck?",
                    "usage: quasi run " + word + " DECK");
  if (std::filesystem::is_directory(word, ignored))
    throw Failure(ExitStatus::kUsage, "'" + word + "' is a directory; which kind of deck is in it?",
                  "usage: quasi run KIND " + word);
  const std::vector<JobRequest> requests = jobs_from_file(word);
  if (requests.size() != 1 || requests.front().deck.empty() || deck_work(requests.front().spec) == nullptr)
    throw Failure(ExitStatus::kInvalidInput, "'" + word + "' does not name exactly one deck on this machine",
                  "give the deck itself: quasi run KIND DECK");
  const JobRequest& request = requests.front();
  Target target{.kind = std::string(wire::kind_of(request.spec)), .deck = request.deck.string()};
  target.settings.assign(deck_work(request.spec)->settings().begin(), deck_work(request.spec)->settings().end());
  target.exports.assign(deck_work(request.spec)->exports().begin(), deck_work(request.spec)->exports().end());
  return target;
}

}  // namespace

ExitStatus run(Console& console, const RunCommandOptions& options) {
  const auto engine = require_engine();
  const Target target = target_of(options);
  std::vector<std::string> arguments{"run", target.kind, target.deck};
  const auto add = [&](const std::string& flag, const std::string& value) {
    if (value.empty()) return;
    arguments.push_back(flag);
    arguments.push_back(value);
  };
  add("--output", options.output);
  add("--device", options.device);
  for (const v1::Setting& setting : target.settings) add("--set", setting.key() + "=" + setting.value());
  for (const std::string& setting : options.settings) add("--set", setting);
  for (const std::string& format : target.exports) add("--export", format);
  for (const std::string& format : options.exports) add("--export", format);
  if (console.json()) arguments.emplace_back("--json");
  if (console.quiet()) arguments.emplace_back("--quiet");
  console.flush();
  const ChildEnd end = run_engine(engine, arguments);
  const ExitStatus status = status_of_engine(end);
  if (const std::string crash = describe_engine_end(end); !crash.empty())
    throw Failure(status, crash, "give it more memory or a smaller problem; if it stays so, report it");
  return status;
}

}  // namespace quasi::client
