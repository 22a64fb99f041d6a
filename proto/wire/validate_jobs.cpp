#include <google/protobuf/descriptor.h>

#include <set>

#include "proto/wire/checks.hpp"
#include "proto/wire/limits.hpp"
#include "proto/wire/status.hpp"
#include "proto/wire/sweeps/sweep.hpp"
#include "proto/wire/sweeps/validate_dependencies.hpp"
#include "proto/wire/validate.hpp"

namespace quasi::wire {
namespace {

namespace pb = google::protobuf;
using checks::at;
using checks::shown;

/// The kinds of work in the order of the message.
const pb::OneofDescriptor& work_oneof() {
  static const pb::OneofDescriptor& work = *v1::JobSpec::descriptor()->FindOneofByName("work");
  return work;
}

bool takes_deck(const pb::FieldDescriptor& kind) {
  return kind.message_type() == v1::DeckWork::descriptor();
}

bool is_label_key(std::string_view key) {
  if (key.empty() || key.size() > limits::kLabelKeyBytes || key[0] < 'a' || key[0] > 'z')
    return false;
  for (const char c : key)
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-'))
      return false;
  return true;
}

void check_labels(const google::protobuf::Map<std::string, std::string>& labels,
                  const std::string& field, Violations& violations) {
  checks::count(labels.size(), limits::kLabels, "entries", field, violations);
  for (const auto& [key, value] : labels) {
    if (!is_label_key(key))
      violations.add(field, "key must match [a-z][a-z0-9_.-]{0,62}, got " + shown(key));
    checks::text(value, limits::kLabelValueBytes, field + "[" + shown(key) + "]", violations);
  }
}

bool is_slot(std::string_view slot) { return is_relative_path(slot, limits::kSlotBytes); }

constexpr std::string_view kSlotRule =
    "must be a relative path of 1...8 names of [A-Za-z0-9._-]{1,128} that do not start with a dot, "
    "got ";

void check_inputs(const v1::JobSpec& spec, const std::string& path, Violations& violations) {
  checks::count(static_cast<std::uint64_t>(spec.inputs_size()), limits::kInputs, "entries",
                at(path, "inputs"), violations);
  std::set<std::string> slots;
  for (int i = 0; i < spec.inputs_size(); ++i) {
    const v1::Input& input = spec.inputs(i);
    const std::string field = at(path, "inputs", i);
    if (!is_slot(input.slot()))
      violations.add(at(field, "slot"), std::string(kSlotRule) + shown(input.slot()));
    else if (!slots.insert(input.slot()).second)
      violations.add(at(field, "slot"), shown(input.slot()) + " is already another input's slot");
    if (input.has_from()) {
      check_source(input, field, violations);
      continue;
    }
    checks::digest(input.digest(), at(field, "digest"), violations);
    checks::at_most(input.size_bytes(), limits::kBlobBytes, at(field, "size_bytes"), violations);
  }
  // "deck" and "deck/CONTROL" cannot both be files.
  for (const std::string& slot : slots) {
    for (std::size_t slash = slot.find('/'); slash != std::string::npos;
         slash = slot.find('/', slash + 1)) {
      if (slots.count(slot.substr(0, slash)) > 0)
        violations.add(at(path, "inputs"), "slot " + shown(slot) + " lies below the file " +
                                               shown(slot.substr(0, slash)));
    }
  }
}

void check_deck(const v1::JobSpec& spec, const v1::DeckWork& work, const std::string& path,
                Violations& violations) {
  const std::string field = at(path, kind_of(spec));
  if (!is_slot(work.deck())) {
    violations.add(at(field, "deck"), std::string(kSlotRule) + shown(work.deck()));
  } else {
    bool found = false;
    for (const v1::Input& input : spec.inputs())
      found = found || input.slot() == work.deck() || input.slot().starts_with(work.deck() + "/");
    if (!found)
      violations.add(at(field, "deck"),
                     "must be an input's slot or a directory that contains one, "
                     "got " +
                         shown(work.deck()));
  }
  checks::count(static_cast<std::uint64_t>(work.settings_size()), limits::kSettings, "entries",
                at(field, "settings"), violations);
  for (int i = 0; i < work.settings_size(); ++i) {
    const std::string setting = at(field, "settings", i);
    if (work.settings(i).key().empty()) violations.add(at(setting, "key"), "must not be empty");
    checks::text(work.settings(i).key(), limits::kSettingKeyBytes, at(setting, "key"), violations);
    checks::text(work.settings(i).value(), limits::kSettingValueBytes, at(setting, "value"),
                 violations, checks::Lines::kMany);
  }
  checks::count(static_cast<std::uint64_t>(work.exports_size()), limits::kExports, "entries",
                at(field, "exports"), violations);
  for (int i = 0; i < work.exports_size(); ++i) {
    if (!is_file_name(work.exports(i)))
      violations.add(at(field, "exports", i),
                     "must be the name of a format, got " + shown(work.exports(i)));
  }
  if (!v1::DevicePreference_IsValid(work.device()))
    violations.add(at(field, "device"), "must be AUTO, CPU or CUDA, got number " +
                                            std::to_string(static_cast<int>(work.device())));
}

void check_steps(std::uint32_t steps, const google::protobuf::Duration& interval,
                 const std::string& field, Violations& violations) {
  checks::at_most(steps, limits::kTestSteps, at(field, "steps"), violations);
  checks::duration(interval, at(field, "interval"), violations);
}

void check_test(const v1::TestWork& work, const std::string& path, Violations& violations) {
  switch (work.action_case()) {
    case v1::TestWork::ACTION_NOT_SET:
      violations.add(path, "must hold one kind of test work: noop, sleep, spin, emit, ...");
      break;
    case v1::TestWork::kSleep:
      checks::duration(work.sleep().duration(), at(path, "sleep.duration"), violations);
      break;
    case v1::TestWork::kSpin:
      checks::duration(work.spin().duration(), at(path, "spin.duration"), violations);
      break;
    case v1::TestWork::kEmit:
      checks::at_most(work.emit().bytes(), limits::kTestEmitBytes, at(path, "emit.bytes"),
                      violations);
      break;
    case v1::TestWork::kProgress:
      check_steps(work.progress().steps(), work.progress().interval(), at(path, "progress"),
                  violations);
      break;
    case v1::TestWork::kCheckpointing:
      check_steps(work.checkpointing().steps(), work.checkpointing().interval(),
                  at(path, "checkpointing"), violations);
      break;
    case v1::TestWork::kExit:
      if (work.exit().status() < 0 || work.exit().status() > 255)
        violations.add(at(path, "exit.status"),
                       "must be 0...255, got " + std::to_string(work.exit().status()));
      break;
    case v1::TestWork::kSignal:
      if (work.signal().number() < 1 || work.signal().number() > 31)
        violations.add(at(path, "signal.number"),
                       "must be 1...31, got " + std::to_string(work.signal().number()));
      break;
    case v1::TestWork::kFlaky:
      if (work.flaky().status() < 0 || work.flaky().status() > 255)
        violations.add(at(path, "flaky.status"),
                       "must be 0...255, got " + std::to_string(work.flaky().status()));
      break;
    case v1::TestWork::kGarbageIpc:
      checks::at_most(work.garbage_ipc().bytes(), 1U << 20, at(path, "garbage_ipc.bytes"),
                      violations);
      break;
    case v1::TestWork::kNoop:
    case v1::TestWork::kHang:
      break;
  }
}

void check_resources(const v1::Resources& resources, const std::string& path,
                     Violations& violations) {
  checks::pool(resources.pool(), at(path, "pool"), violations);
  checks::at_most(resources.gpus(), limits::kGpus, at(path, "gpus"), violations);
  checks::at_most(resources.ranks(), limits::kRanks, at(path, "ranks"), violations);
  if (resources.gpus() > 0 && resources.ranks() > resources.gpus() &&
      resources.ranks() <= limits::kRanks)
    violations.add(at(path, "ranks"), "must not exceed gpus (" + std::to_string(resources.gpus()) +
                                          "), got " + std::to_string(resources.ranks()));
  checks::at_most(resources.gpu_mem_bytes(), limits::kMemoryBytes, at(path, "gpu_mem_bytes"),
                  violations);
  checks::at_most(resources.cpus(), limits::kCpus, at(path, "cpus"), violations);
  checks::at_most(resources.ram_bytes(), limits::kMemoryBytes, at(path, "ram_bytes"), violations);
  checks::at_most(resources.scratch_bytes(), limits::kMemoryBytes, at(path, "scratch_bytes"),
                  violations);
}

template <class Jobs>
void check_batch(const Jobs& jobs, const ValidationOptions& options, Violations& violations) {
  const auto size = static_cast<std::uint64_t>(jobs.size());
  if (size == 0 || size > limits::kJobsPerCall)
    violations.add("jobs", "must have 1..." + std::to_string(limits::kJobsPerCall) +
                               " entries, got " + std::to_string(size));
  for (int i = 0; i < jobs.size(); ++i)
    validate_spec(jobs[i], at("", "jobs", i), options, violations);
  for (int i = 0; i < jobs.size(); ++i)
    check_order(jobs[i], static_cast<std::uint32_t>(i), at("", "jobs", i), violations);
}

/// Checks the jobs of a request, or its sweep.
template <class Request>
void check_jobs(const Request& request, const ValidationOptions& options, Violations& violations) {
  if (!request.has_sweep()) return check_batch(request.jobs(), options, violations);
  validate_sweep(request.sweep(), "sweep", options, violations);
  if (!request.jobs().empty())
    violations.add("jobs", "must be empty beside a sweep, got " +
                               std::to_string(request.jobs_size()) + " entries");
}

std::string one_of_the_kinds() {
  std::string text = "must be one of ";
  for (const std::string& kind : offered_kinds())
    text += (kind == offered_kinds().front() ? "" : ", ") + kind;
  return text;
}

void check_filter(const v1::JobFilter& filter, const std::string& path, Violations& violations) {
  checks::count(static_cast<std::uint64_t>(filter.job_ids_size()), limits::kIdsPerCall, "entries",
                at(path, "job_ids"), violations);
  for (int i = 0; i < filter.job_ids_size(); ++i)
    checks::id(filter.job_ids(i), 'j', at(path, "job_ids", i), violations);
  for (int i = 0; i < filter.states_size(); ++i)
    checks::known(filter.states(i), v1::JobState_IsValid, "QUEUED, LEASED, RUNNING, ...",
                  at(path, "states", i), violations);
  for (int i = 0; i < filter.kinds_size(); ++i) {
    bool found = false;
    for (const std::string& kind : all_kinds()) found = found || kind == filter.kinds(i);
    if (!found)
      violations.add(at(path, "kinds", i), one_of_the_kinds() + ", got " + shown(filter.kinds(i)));
  }
  check_labels(filter.labels(), at(path, "labels"), violations);
  if (!filter.job_set_id().empty())
    checks::id(filter.job_set_id(), 's', at(path, "job_set_id"), violations);
  checks::text(filter.name_prefix(), limits::kNameBytes, at(path, "name_prefix"), violations);
  if (filter.has_created_after())
    checks::timestamp(filter.created_after(), at(path, "created_after"), violations);
  if (filter.has_created_before())
    checks::timestamp(filter.created_before(), at(path, "created_before"), violations);
}

}  // namespace

std::string_view kind_of(const v1::JobSpec& spec) {
  const pb::FieldDescriptor* field =
      spec.GetReflection()->GetOneofFieldDescriptor(spec, &work_oneof());
  return field == nullptr ? std::string_view() : std::string_view(field->name());
}

const std::vector<std::string>& all_kinds() {
  static const std::vector<std::string> kKinds = [] {
    std::vector<std::string> kinds;
    for (int i = 0; i < work_oneof().field_count(); ++i)
      kinds.push_back(work_oneof().field(i)->name());
    return kinds;
  }();
  return kKinds;
}

const std::vector<std::string>& offered_kinds() {
  static const std::vector<std::string> kKinds = [] {
    std::vector<std::string> kinds;
    for (int i = 0; i < work_oneof().field_count(); ++i)
      if (takes_deck(*work_oneof().field(i))) kinds.push_back(work_oneof().field(i)->name());
    return kinds;
  }();
  return kKinds;
}

const v1::DeckWork* deck_of(const v1::JobSpec& spec) {
  const pb::FieldDescriptor* field =
      spec.GetReflection()->GetOneofFieldDescriptor(spec, &work_oneof());
  if (field == nullptr || !takes_deck(*field)) return nullptr;
  return static_cast<const v1::DeckWork*>(&spec.GetReflection()->GetMessage(spec, field));
}

v1::DeckWork* mutable_deck_of(v1::JobSpec& spec) {
  const pb::FieldDescriptor* field =
      spec.GetReflection()->GetOneofFieldDescriptor(spec, &work_oneof());
  if (field == nullptr || !takes_deck(*field)) return nullptr;
  return static_cast<v1::DeckWork*>(spec.GetReflection()->MutableMessage(&spec, field));
}

v1::DevicePreference device_of(const v1::JobSpec& spec) {
  const v1::DeckWork* deck = deck_of(spec);
  const auto device = deck == nullptr ? v1::DEVICE_PREFERENCE_AUTO : deck->device();
  return device == v1::DEVICE_PREFERENCE_UNSPECIFIED ? v1::DEVICE_PREFERENCE_AUTO : device;
}

void validate_spec(const v1::JobSpec& spec, const std::string& path,
                   const ValidationOptions& options, Violations& violations) {
  const std::size_t size = spec.ByteSizeLong();
  if (size > limits::kSpecBytes)
    violations.add(path,
                   "must have at most " + std::to_string(limits::kSpecBytes) + " bytes, got " +
                       std::to_string(size) + "; put large data into an input file",
                   reason::kSpecTooLarge);
  checks::text(spec.name(), limits::kNameBytes, at(path, "name"), violations);
  check_labels(spec.labels(), at(path, "labels"), violations);
  check_inputs(spec, path, violations);
  check_dependencies(spec, path, violations);
  if (const v1::DeckWork* deck = deck_of(spec)) {
    check_deck(spec, *deck, path, violations);
  } else if (spec.has_test()) {
    if (!options.enable_test_work)
      violations.add(at(path, "test"),
                     "this server runs no test work; set enable_test_work in its configuration",
                     reason::kKindDisabled);
    check_test(spec.test(), at(path, "test"), violations);
  } else {
    violations.add(at(path, "work"), one_of_the_kinds());
  }
  check_resources(spec.resources(), at(path, "resources"), violations);
  if (device_of(spec) == v1::DEVICE_PREFERENCE_CPU && spec.resources().gpus() > 0)
    violations.add(at(path, "resources.gpus"),
                   "must be 0 with device CPU, got " + std::to_string(spec.resources().gpus()));
  checks::duration(spec.max_runtime(), at(path, "max_runtime"), violations);
  checks::at_most(spec.retry().max_attempts(), limits::kMaxAttempts, at(path, "retry.max_attempts"),
                  violations);
  checks::duration(spec.checkpoint().interval(), at(path, "checkpoint.interval"), violations);
  checks::at_most(spec.checkpoint().keep(), limits::kCheckpointsKept, at(path, "checkpoint.keep"),
                  violations);
  const auto priority = static_cast<std::int64_t>(spec.priority());
  if (priority < -static_cast<std::int64_t>(limits::kPriority) ||
      priority > static_cast<std::int64_t>(limits::kPriority))
    violations.add(at(path, "priority"), "must be -100...100, got " + std::to_string(priority));
  if (!v1::CachePolicy_IsValid(spec.cache()))
    violations.add(at(path, "cache"), "must be USE, REFRESH or OFF, got " +
                                          std::to_string(static_cast<int>(spec.cache())));
  if (!v1::Visibility_IsValid(spec.visibility()))
    violations.add(at(path, "visibility"), "must be PRIVATE or TENANT, got " +
                                               std::to_string(static_cast<int>(spec.visibility())));
  if (spec.has_not_before())
    checks::timestamp(spec.not_before(), at(path, "not_before"), violations);
}

void validate(const v1::SubmitJobsRequest& request, const ValidationOptions& options,
              Violations& violations) {
  checks::uuid(request.request_id(), "request_id", violations);
  check_jobs(request, options, violations);
}

void validate(const v1::ValidateJobsRequest& request, const ValidationOptions& options,
              Violations& violations) {
  check_jobs(request, options, violations);
}

void validate(const v1::GetCapabilitiesRequest&, Violations&) {}

void validate(const v1::GetJobRequest& request, Violations& violations) {
  const std::string& id = request.job_id();
  // The text is a whole id or a prefix of one. Padding completes a prefix with valid characters.
  std::string padded = id;
  if (id.size() >= 8 && id.size() < 28) padded.append(28 - id.size(), '0');
  if (!is_id(padded, 'j'))
    violations.add("job_id",
                   "must be a job's id, j_ and 26 base32 characters, or at least the "
                   "first 6 of them, got " +
                       shown(id));
}

void validate(const v1::ListJobsRequest& request, Violations& violations) {
  check_filter(request.filter(), "filter", violations);
  checks::page(request.page_size(), request.page_token(), violations);
  if (!v1::ListJobsRequest::Order_IsValid(request.order()))
    violations.add("order", "must be CREATED_DESCENDING or CREATED_ASCENDING, got number " +
                                std::to_string(static_cast<int>(request.order())));
}

void validate(const v1::ExplainJobRequest& request, Violations& violations) {
  checks::id(request.job_id(), 'j', "job_id", violations);
}

void validate(const v1::WatchJobsRequest& request, Violations& violations) {
  check_filter(request.filter(), "filter", violations);
  if (request.filter().states_size() > 0)
    violations.add("filter.states", "must be empty: states change while they are watched");
  checks::text(request.resume_token(), limits::kTokenBytes, "resume_token", violations);
  if (request.snapshot() && !request.resume_token().empty())
    violations.add("snapshot", "must not be set together with resume_token");
}

void validate(const v1::ReadLogsRequest& request, Violations& violations) {
  checks::id(request.job_id(), 'j', "job_id", violations);
}

void validate(const v1::ListArtifactsRequest& request, Violations& violations) {
  checks::id(request.job_id(), 'j', "job_id", violations);
  checks::page(request.page_size(), request.page_token(), violations);
}

void validate(const v1::ListPoolsRequest&, Violations&) {}

}  // namespace quasi::wire
