#include "client/views/job_view.hpp"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>

#include "client/views/readable.hpp"

namespace quasi::client {
namespace {

namespace pb = google::protobuf;

std::string prefix_of(const pb::EnumDescriptor& type) {
  const std::string zero = type.FindValueByNumber(0)->name();
  return zero.substr(0, zero.size() - std::string("UNSPECIFIED").size());
}

std::string enum_name(const pb::EnumDescriptor& type, int number) {
  const pb::EnumValueDescriptor* value = type.FindValueByNumber(number);
  if (value == nullptr) return "UNKNOWN(" + std::to_string(number) + ")";
  return value->name().substr(prefix_of(type).size());
}

Json time_json(bool present, const pb::Timestamp& time) {
  return present ? Json(rfc3339(unix_ms(time))) : Json();
}

Json message_json(const pb::Message& message) {
  std::string text;
  pb::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  if (!pb::util::MessageToJsonString(message, &text, options).ok()) return Json();
  return Json::parse(text, nullptr, false);
}

Json attempt_json(const v1::Attempt& attempt) {
  Json json{{"number", attempt.number()},
            {"id", attempt.id()},
            {"worker", attempt.worker_name()},
            {"worker_id", attempt.worker_id()},
            {"devices", Json::array()},
            {"outcome", attempt.outcome() == v1::ATTEMPT_OUTCOME_UNSPECIFIED
                            ? Json("open")
                            : Json(enum_word(*v1::AttemptOutcome_descriptor(), attempt.outcome()))},
            {"granted", time_json(attempt.has_granted(), attempt.granted())},
            {"started", time_json(attempt.has_started(), attempt.started())},
            {"ended", time_json(attempt.has_ended(), attempt.ended())},
            {"failure", attempt.has_failure() ? failure_json(attempt.failure()) : Json()},
            {"log_bytes", attempt.log_bytes()}};
  for (const std::string& device : attempt.device_ids()) json["devices"].push_back(device);
  if (!attempt.release_message().empty()) json["release_message"] = attempt.release_message();
  json["isolation"] = attempt.has_isolation() ? Json{{"whole", attempt.isolation().whole()},
                                                     {"walls", attempt.isolation().walls()}}
                                              : Json();
  if (attempt.has_usage()) json["usage"] = message_json(attempt.usage());
  return json;
}

}  // namespace

std::string enum_word(const pb::EnumDescriptor& type, int number) {
  std::string name = enum_name(type, number);
  if (type.FindValueByNumber(number) == nullptr) return name;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

std::string state_word(v1::JobState state) {
  return enum_word(*v1::JobState_descriptor(), static_cast<int>(state));
}

std::string reason_word(v1::FailureReason why) {
  return enum_name(*v1::FailureReason_descriptor(), static_cast<int>(why));
}

std::vector<std::string> state_words() {
  std::vector<std::string> words;
  const pb::EnumDescriptor& type = *v1::JobState_descriptor();
  for (int i = 0; i < type.value_count(); ++i)
    if (type.value(i)->number() != 0) words.push_back(enum_word(type, type.value(i)->number()));
  return words;
}

v1::JobState state_of_word(const std::string& word) {
  const pb::EnumDescriptor& type = *v1::JobState_descriptor();
  for (int i = 0; i < type.value_count(); ++i)
    if (enum_word(type, type.value(i)->number()) == word && type.value(i)->number() != 0)
      return static_cast<v1::JobState>(type.value(i)->number());
  return v1::JOB_STATE_UNSPECIFIED;
}

bool is_final(v1::JobState state) {
  return state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED ||
         state == v1::JOB_STATE_CANCELLED;
}

Colour colour_of(v1::JobState state) {
  switch (state) {
    case v1::JOB_STATE_SUCCEEDED:
      return Colour::kGreen;
    case v1::JOB_STATE_FAILED:
      return Colour::kRed;
    case v1::JOB_STATE_CANCELLED:
    case v1::JOB_STATE_CANCELLING:
      return Colour::kYellow;
    case v1::JOB_STATE_RUNNING:
    case v1::JOB_STATE_LEASED:
      return Colour::kBlue;
    default:
      return Colour::kPlain;
  }
}

std::int64_t unix_ms(const pb::Timestamp& time) {
  return time.seconds() * 1000 + time.nanos() / 1'000'000;
}

std::string failure_text(const v1::Failure& failure) {
  std::string text = reason_word(failure.reason());
  if (!failure.message().empty()) text += ": " + failure.message();
  if (failure.has_signal()) text += " (signal " + std::to_string(failure.signal()) + ")";
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

Json failure_json(const v1::Failure& failure) {
  return Json{{"reason", reason_word(failure.reason())},
              {"message", failure.message()},
              {"exit_status", failure.has_exit_status() ? Json(failure.exit_status()) : Json()},
              {"signal", failure.has_signal() ? Json(failure.signal()) : Json()}};
}

Json progress_json(const v1::Progress& progress) {
  Json metrics = Json::object();
  for (const auto& [name, value] : progress.metrics()) metrics[name] = value;
  return Json{{"phase", progress.phase()},
              {"done", progress.done()},
              {"total", progress.total()},
              {"metrics", metrics},
              {"time", time_json(progress.has_time(), progress.time())}};
}

Json artifact_json(const v1::Artifact& artifact) {
  return Json{{"name", artifact.name()},
              {"digest", artifact.digest()},
              {"size_bytes", artifact.size_bytes()},
              {"media_type", artifact.media_type()}};
}

Json job_json(const v1::Job& job, Detail detail) {
  Json labels = Json::object();
  const std::map<std::string, std::string> sorted(job.spec().labels().begin(),
                                                  job.spec().labels().end());
  for (const auto& [key, value] : sorted) labels[key] = value;
  Json json{{"id", job.id()},
            {"name", job.spec().name()},
            {"kind", job.kind()},
            {"state", state_word(job.state())},
            {"failure", job.has_failure() ? failure_json(job.failure()) : Json()},
            {"labels", labels},
            {"owner", job.owner().empty() ? Json() : Json(job.owner())},
            {"tenant", job.tenant().empty() ? Json() : Json(job.tenant())},
            {"priority", job.priority()},
            {"reused", job.reused()},
            {"set", job.job_set_id().empty() ? Json() : Json(job.job_set_id())},
            {"reused_from", job.reused_from().empty() ? Json() : Json(job.reused_from())},
            {"attempts", job.attempts()},
            {"max_attempts", job.max_attempts()},
            {"revision", job.revision()},
            {"created", time_json(job.has_created(), job.created())},
            {"started", time_json(job.has_started(), job.started())},
            {"ended", time_json(job.has_ended(), job.ended())},
            {"not_before", time_json(job.has_not_before(), job.not_before())},
            {"cancel_requested", time_json(job.has_cancel_requested(), job.cancel_requested())},
            {"progress", job.has_progress() ? progress_json(job.progress()) : Json()}};
  if (detail == Detail::kRow) return json;

  json["spec"] = message_json(job.spec());
  json["cancel_reason"] = job.cancel_reason().empty() ? Json() : Json(job.cancel_reason());
  json["after"] = Json::array();
  for (const v1::AwaitedJob& other : job.dependencies())
    json["after"].push_back(
        {{"id", other.job_id()},
         {"name", other.name()},
         {"state", state_word(other.state())},
         {"condition", enum_word(*v1::Dependency::Condition_descriptor(), other.condition())}});
  json["attempt_history"] = Json::array();
  for (const v1::Attempt& attempt : job.attempt_history())
    json["attempt_history"].push_back(attempt_json(attempt));
  json["checkpoint"] =
      job.has_checkpoint()
          ? Json{{"sequence", job.checkpoint().sequence()},
                 {"step", job.checkpoint().step()},
                 {"size_bytes", job.checkpoint().size_bytes()},
                 {"created", time_json(job.checkpoint().has_created(), job.checkpoint().created())}}
          : Json();
  json["artifacts"] = Json::array();
  for (const v1::Artifact& artifact : job.artifacts())
    json["artifacts"].push_back(artifact_json(artifact));
  json["log_bytes"] = job.log_bytes();
  json["summary"] = Json();
  if (!job.summary_json().empty()) {
    const Json summary = Json::parse(job.summary_json(), nullptr, false);
    json["summary"] = summary.is_discarded() ? Json(job.summary_json()) : summary;
  }
  return json;
}

std::vector<std::string> short_ids(const std::vector<std::string>& ids) {
  std::size_t length = 12;
  const std::set<std::string> distinct(ids.begin(), ids.end());
  for (; length < 28; ++length) {
    std::set<std::string> beginnings;
    for (const std::string& id : distinct) beginnings.insert(id.substr(0, length));
    if (beginnings.size() == distinct.size()) break;
  }
  std::vector<std::string> shown;
  for (const std::string& id : ids) shown.push_back(id.substr(0, length));
  return shown;
}

}  // namespace quasi::client
