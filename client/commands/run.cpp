#include "client/commands/run.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "client/commands/sweeps/run_sweep.hpp"
#include "client/engine/engine_process.hpp"
#include "client/engine/interrupt.hpp"
#include "client/engine/kept_results.hpp"
#include "client/engine/local_check.hpp"
#include "client/engine/output_folder.hpp"
#include "client/input/job_file.hpp"
#include "client/session/durable_file.hpp"
#include "client/views/readable.hpp"
#include "proto/wire/validate.hpp"

namespace quasi::client {
namespace {

/// Kind and deck of the command line. A TOML deck states its own kind, and a job file names both.
struct Target {
  std::string kind;
  std::string deck;
  v1::DeckWork work;  ///< its settings, exports and device
};

Target target_of(const std::string& kind, const std::filesystem::path& deck) {
  // The [job] table of a TOML deck is checked as for a submission. Its fields for the queue have no
  // effect here.
  JobRequest request = deck_settings(kind, deck);
  wire::mutable_deck_of(request.spec)->set_deck("deck");
  request.files.push_back(
      {.slot = "deck", .path = deck, .size_bytes = 0});  // the deck is used where it is
  check_limits({request});
  return {.kind = kind, .deck = deck.string(), .work = *wire::deck_of(request.spec)};
}

Target target_of(const RunCommandOptions& options) {
  if (options.words.size() == 2) return target_of(options.words[0], options.words[1]);
  if (options.words.size() != 1)
    throw Failure(ExitStatus::kUsage,
                  options.words.empty() ? "no deck was given" : "only one deck can run at a time",
                  "usage: quasi run KIND DECK, or quasi run DECK.toml");
  const std::string& word = options.words.front();
  std::error_code ignored;
  for (const std::string& kind : wire::offered_kinds())
    if (word == kind && !std::filesystem::exists(word, ignored))
      throw Failure(ExitStatus::kUsage, "'" + word + "' is a kind of job and needs a deck",
                    "usage: quasi run " + word + " DECK");
  if (std::filesystem::is_directory(word, ignored)) jobs_from_file(word);  // asks for the kind
  if (const std::string kind = kind_of_toml(word); !kind.empty()) return target_of(kind, word);
  const std::vector<JobRequest> requests = jobs_from_file(word);
  if (requests.size() != 1 || requests.front().deck.empty() ||
      wire::deck_of(requests.front().spec) == nullptr)
    throw Failure(ExitStatus::kInvalidInput,
                  "'" + word + "' does not name exactly one deck on this machine",
                  "give the deck itself: quasi run KIND DECK");
  const JobRequest& request = requests.front();
  return {.kind = std::string(wire::kind_of(request.spec)),
          .deck = request.deck.string(),
          .work = *wire::deck_of(request.spec)};
}

/// The job that a sweep varies, with the settings of the deck and of the command line.
v1::JobSpec template_of(const Target& target, const RunCommandOptions& options) {
  v1::DeckWork work = target.work;
  for (const std::string& text : options.settings) {
    const auto equals = std::min(text.find('='), text.size());
    v1::Setting& setting = *work.add_settings();
    setting.set_key(text.substr(0, equals));
    setting.set_value(text.substr(std::min(equals + 1, text.size())));
  }
  v1::JobSpec spec;
  spec.set_name(std::filesystem::path(target.deck).stem().string());
  const auto* field = v1::JobSpec::descriptor()->FindFieldByName(target.kind);
  spec.GetReflection()->MutableMessage(&spec, field)->CopyFrom(work);
  return spec;
}

std::string device_name(v1::DevicePreference preference) {
  switch (preference) {
    case v1::DEVICE_PREFERENCE_CPU:
      return "cpu";
    case v1::DEVICE_PREFERENCE_CUDA:
      return "cuda:0";
    default:
      return "";
  }
}

/// Tells the user that interrupted a run how to continue it, and when its checkpoint would be lost.
void mention_checkpoint(Console& console, const std::filesystem::path& output) {
  const std::filesystem::path folder = output / "checkpoint";
  std::error_code absent;
  if (std::filesystem::is_empty(folder, absent) || absent) return;
  console.note("the finished part is kept in '" + folder.string() +
               "': the same command continues from it, another run into '" + output.string() +
               "' discards it");
}

/// Tells where the results are and how to look at them.
void mention_results(Console& console, const OutputFolder& output) {
  std::string names;
  std::size_t more = 0;
  constexpr std::size_t kNamed = 6;
  for (const std::filesystem::path& file : output.files()) {
    if (std::distance(output.files().begin(), output.files().find(file)) >= std::ptrdiff_t{kNamed})
      ++more;
    else
      names += (names.empty() ? "" : ", ") + file.generic_string();
  }
  if (more > 0) names += " and " + std::to_string(more) + " more";
  const std::string folder = output.path().string();
  console.note("results in '" + folder + "': " + names);
  console.note("see them: quasi plot " + folder + ", quasi report " + folder);
}

/// The words with which the engine runs the job.
std::vector<std::string> engine_arguments(const Console& console, const Target& target,
                                          const RunCommandOptions& options) {
  std::vector<std::string> arguments{"run", target.kind, target.deck};
  const auto add = [&](const std::string& flag, const std::string& value) {
    if (value.empty()) return;
    arguments.push_back(flag);
    arguments.push_back(value);
  };
  add("--output", options.output);
  add("--target-error", options.target_error_ev);
  add("--device", options.device.empty() ? device_name(target.work.device()) : options.device);
  for (const v1::Setting& setting : target.work.settings())
    add("--set", setting.key() + "=" + setting.value());
  for (const std::string& setting : options.settings) add("--set", setting);
  for (const std::string& format : target.work.exports()) add("--export", format);
  for (const std::string& format : options.exports) add("--export", format);
  if (console.json()) arguments.emplace_back("--json");
  if (console.quiet()) arguments.emplace_back("--quiet");
  return arguments;
}

/// Takes the result of an equal run into the folder, and prints what the engine would print.
/// @return false without such a result
bool take_result(Console& console, const KeptResults& store, const LocalAction& action,
                 OutputFolder& output) {
  const auto made_ms = store.take(console, action, output.path());
  if (!made_ms) return false;
  std::error_code ignored;
  std::filesystem::remove_all(output.path() / "checkpoint", ignored);
  constexpr std::size_t kTextBytes = std::size_t{64} << 20;
  console.data(
      read_whole(output.path() / (console.json() ? "summary.json" : "table.txt"), kTextBytes));
  output.finish(ExitStatus::kOk);
  console.note("took the result of an equal run of " + rfc3339(*made_ms));
  mention_results(console, output);
  return true;
}

}  // namespace

ExitStatus run(Console& console, const RunCommandOptions& options) {
  const auto engine = require_engine();
  const Target target = target_of(options);
  if (options.refresh && options.store.empty())
    throw Failure(ExitStatus::kUsage, "--refresh needs a folder of kept results",
                  "name it: --store DIR");
  if (!options.target_error_ev.empty() && (!options.store.empty() || !options.sweep.empty()))
    throw Failure(ExitStatus::kUsage, "--target-error is not allowed with --store or a sweep",
                  "run the job alone, or set the key of the error in the deck");
  if (!options.sweep.empty()) return run_sweep(console, options, template_of(target, options));
  std::optional<KeptResults> store;
  std::optional<LocalAction> action;
  if (!options.store.empty()) {
    store.emplace(options.store);
    v1::JobSpec spec = template_of(target, options);
    for (const std::string& format : options.exports)
      wire::mutable_deck_of(spec)->add_exports(format);
    action = local_action(console, std::move(spec), target.deck);
  }
  const std::vector<std::string> arguments = engine_arguments(console, target, options);
  console.flush();
  OutputFolder output(options.output.empty() ? "quasi-out" : options.output, target.deck,
                      options.force);
  if (action && !options.refresh && take_result(console, *store, *action, output))
    return ExitStatus::kOk;
  const ChildEnd end = run_engine(engine, arguments);
  if (end.signal == SIGPIPE) {
    // If the reader of the output has ended, as in `quasi run ... | head`, this program ends by
    // SIGPIPE like other programs in a pipe.
    ::signal(SIGPIPE, SIG_DFL);
    ::raise(SIGPIPE);
  }
  const ExitStatus status = status_of_engine(end);
  output.finish(status);
  if (const std::string crash = describe_engine_end(end); !crash.empty())
    throw Failure(status, crash,
                  "give it more memory or a smaller problem; report it if that does not help");
  if (interrupt::requested()) mention_checkpoint(console, output.path());
  if (status == ExitStatus::kOk && action) store->keep(*action, output.path(), output.files());
  if (status == ExitStatus::kOk) mention_results(console, output);
  return status;
}

}  // namespace quasi::client
