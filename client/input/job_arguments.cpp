#include <filesystem>

#include "client/commands/submit.hpp"
#include "client/failure.hpp"
#include "client/views/readable.hpp"
#include "proto/wire/validate.hpp"
#include "workers/io/settings.hpp"

namespace quasi::client {
namespace {

namespace fs = std::filesystem;

struct KeyValue {
  std::string key;
  std::string value;
};

KeyValue split(const std::string& flag, const std::string& text, const std::string& example) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw Failure(ExitStatus::kUsage, flag + ": '" + text + "' has no '=' after a name",
                  "write it like " + flag + " " + example);
  return {text.substr(0, equals), text.substr(equals + 1)};
}

/// True if the first word is a kind that takes decks and no file of that name exists.
bool begins_with_kind(const std::vector<std::string>& words) {
  std::error_code ignored;
  for (const std::string& kind : wire::all_kinds())
    if (words.front() == kind && (words.size() > 1 || !fs::exists(kind, ignored))) return true;
  return false;
}

/// Refuses a word that is no file, and names the nearest kind or path.
void refuse_unless_exists(const std::string& word, bool first) {
  std::error_code ignored;
  if (fs::exists(word, ignored)) return;
  const std::string nearest =
      first && word.size() > 2 && word.find_first_of("./") == std::string::npos
          ? nearest_name(word, wire::offered_kinds())
          : "";
  throw Failure(ExitStatus::kLocalFile,
                "no file or directory '" + word + "'" +
                    (nearest.empty() ? "" : "; did you mean the kind '" + nearest + "'?"),
                "check the spelling; usage: quasi submit FILE…, or quasi submit KIND DECK…");
}

/// Sets who reads the results, and whether those of equal jobs are taken.
void apply_sharing(const JobArguments& arguments, v1::JobSpec& spec) {
  if (!arguments.visibility.empty()) {
    if (arguments.visibility != "private" && arguments.visibility != "tenant")
      throw Failure(ExitStatus::kUsage,
                    "--visibility: must be private or tenant, got '" + arguments.visibility + "'",
                    "tenant lets every member of your group read the job and its results");
    spec.set_visibility(arguments.visibility == "tenant" ? v1::VISIBILITY_TENANT
                                                         : v1::VISIBILITY_PRIVATE);
  }
  if (arguments.no_cache && arguments.refresh)
    throw Failure(ExitStatus::kUsage, "--no-cache and --refresh exclude each other",
                  "--refresh offers the new result to later jobs, --no-cache does not");
  if (arguments.no_cache) spec.set_cache(v1::CACHE_POLICY_OFF);
  if (arguments.refresh) spec.set_cache(v1::CACHE_POLICY_REFRESH);
}

}  // namespace

void apply_flags(const JobArguments& arguments, JobRequest& request, const std::string& name) {
  v1::JobSpec& spec = request.spec;
  v1::DeckWork* work = wire::mutable_deck_of(spec);
  const auto needs_deck = [&](const std::string& flag) {
    if (work == nullptr)
      throw Failure(ExitStatus::kUsage,
                    flag + ": a job of kind '" + std::string(wire::kind_of(spec)) + "' has no deck",
                    "leave the flag out");
  };
  for (const std::string& text : arguments.settings) {
    needs_deck("--set");
    const KeyValue setting = split("--set", text, "KEY=VALUE");
    v1::Setting& added = *work->add_settings();
    added.set_key(setting.key);
    added.set_value(setting.value);
  }
  for (const std::string& format : arguments.exports) {
    needs_deck("--export");
    work->add_exports(format);
  }
  if (!arguments.device.empty()) {
    needs_deck("--device");
    if (arguments.device == "auto")
      work->set_device(v1::DEVICE_PREFERENCE_AUTO);
    else if (arguments.device == "cpu")
      work->set_device(v1::DEVICE_PREFERENCE_CPU);
    else if (arguments.device == "cuda")
      work->set_device(v1::DEVICE_PREFERENCE_CUDA);
    else
      throw Failure(
          ExitStatus::kUsage, "--device: must be auto, cpu or cuda, got '" + arguments.device + "'",
          "a queue chooses the GPU itself; one by number is for: quasi run --device cuda:0");
  }
  for (const std::string& text : arguments.inputs) {
    const KeyValue input = split("--input", text, "deck/FILE=../other/FILE");
    LocalInput file = local_input(input.key, input.value);
    std::erase_if(request.files, [&](const LocalInput& other) { return other.slot == file.slot; });
    request.files.push_back(std::move(file));
  }
  for (const std::string& text : arguments.labels) {
    const KeyValue label = split("--label", text, "project=thesis");
    (*spec.mutable_labels())[label.key] = label.value;
  }
  if (!name.empty()) spec.set_name(name);
  apply_sharing(arguments, spec);
  if (arguments.priority) spec.set_priority(*arguments.priority);
  if (arguments.gpus) spec.mutable_resources()->set_gpus(*arguments.gpus);
  if (arguments.ranks) spec.mutable_resources()->set_ranks(*arguments.ranks);
  if (!arguments.pool.empty()) spec.mutable_resources()->set_pool(arguments.pool);
  if (arguments.max_attempts) spec.mutable_retry()->set_max_attempts(*arguments.max_attempts);
  if (!arguments.max_runtime.empty()) {
    const auto seconds = parse_duration_seconds(arguments.max_runtime);
    if (!seconds || *seconds <= 0.0 || *seconds > 1e9)
      throw Failure(ExitStatus::kUsage,
                    "--max-runtime: '" + arguments.max_runtime + "' is not a time above zero",
                    "write it like 90s, 15m, 2h or 1d");
    spec.mutable_max_runtime()->set_seconds(static_cast<std::int64_t>(*seconds));
    spec.mutable_max_runtime()->set_nanos(static_cast<std::int32_t>(
        (*seconds - static_cast<double>(static_cast<std::int64_t>(*seconds))) * 1e9));
  }
}

std::vector<JobRequest> build_jobs(const JobArguments& arguments) {
  if (arguments.words.empty())
    throw Failure(ExitStatus::kUsage, "no file or deck was given",
                  "usage: quasi submit FILE…, or quasi submit KIND DECK…");
  std::vector<JobRequest> requests;
  if (begins_with_kind(arguments.words)) {
    const std::string& kind = arguments.words.front();
    if (arguments.words.size() == 1)
      throw Failure(ExitStatus::kUsage, "'" + kind + "' is a kind of job and needs a deck",
                    "usage: quasi submit " + kind + " DECK…");
    for (std::size_t i = 1; i < arguments.words.size(); ++i) {
      refuse_unless_exists(arguments.words[i], false);
      requests.push_back(job_from_deck(kind, arguments.words[i]));
    }
  } else {
    for (std::size_t i = 0; i < arguments.words.size(); ++i) {
      refuse_unless_exists(arguments.words[i], i == 0);
      for (JobRequest& request : jobs_from_file(arguments.words[i]))
        requests.push_back(std::move(request));
    }
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    // With several jobs, the base name of each deck is appended to keep the names apart.
    std::string name = arguments.name;
    if (!name.empty() && requests.size() > 1) name += "[" + std::to_string(i) + "]";
    apply_flags(arguments, requests[i], name);
  }
  return requests;
}

}  // namespace quasi::client
