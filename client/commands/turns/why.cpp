#include "client/commands/turns/why.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "client/input/job_ids.hpp"
#include "client/views/job_view.hpp"
#include "client/views/readable.hpp"

namespace quasi::client {
namespace {

Json explanation_json(const v1::ExplainJobResponse& answer) {
  return {{"id", answer.job_id()},
          {"state", state_word(answer.state())},
          {"reason", enum_word(*v1::WaitReason_descriptor(), answer.reason())},
          {"message", answer.message()},
          {"needed_gpu_bytes", answer.needed_gpu_bytes()},
          {"memory_correction", answer.memory_correction()},
          {"time_correction", answer.time_correction()},
          {"expected_runtime_seconds", answer.expected_runtime_seconds()},
          {"position", answer.position() > 0 ? Json(answer.position()) : Json()},
          {"blocking", Json(std::vector<std::string>(answer.blocking_job_ids().begin(),
                                                     answer.blocking_job_ids().end()))},
          {"blocking_jobs", answer.blocking_jobs()},
          {"workers",
           Json(std::vector<std::string>(answer.worker_ids().begin(), answer.worker_ids().end()))},
          {"earliest_start",
           answer.has_earliest_start() ? Json(rfc3339(unix_ms(answer.earliest_start()))) : Json()},
          {"expected_start",
           answer.has_expected_start() ? Json(rfc3339(unix_ms(answer.expected_start()))) : Json()},
          {"latest_start",
           answer.has_latest_start() ? Json(rfc3339(unix_ms(answer.latest_start()))) : Json()}};
}

std::string explanation_text(const Console& console, const v1::ExplainJobResponse& answer) {
  std::string text = answer.job_id() + "  " +
                     console.paint(colour_of(answer.state()), state_word(answer.state())) + ": " +
                     printable(answer.message()) + "\n";
  const auto line = [&](const std::string& name, const std::string& value) {
    text += "  " + console.paint(Colour::kDim, name) + value + "\n";
  };
  if (answer.position() > 0) line("position   ", std::to_string(answer.position()));
  const bool waits =
      answer.reason() == v1::WAIT_REASON_DEPENDENCY || answer.reason() == v1::WAIT_REASON_EQUAL_JOB;
  const std::string by = waits ? "waits for  " : "taken by   ";
  for (const std::string& id : answer.blocking_job_ids()) line(by, id);
  const auto named = static_cast<std::uint64_t>(answer.blocking_job_ids_size());
  if (answer.blocking_jobs() > named && named > 0)
    line(by, std::to_string(answer.blocking_jobs() - named) + " more");
  if (answer.needed_gpu_bytes() > 0) {
    char factor[32];
    std::snprintf(factor, sizeof factor, "%.2f", answer.memory_correction());
    line("memory     ", readable_bytes(answer.needed_gpu_bytes()) + " on each GPU: the stated " +
                            "memory times " + factor + ", as measured of its kind here");
  }
  if (answer.has_earliest_start())
    line("earliest   ", local_time(unix_ms(answer.earliest_start())));
  if (answer.time_correction() > 0 && answer.time_correction() < 1)
    line("takes      ", readable_seconds(answer.expected_runtime_seconds()) +
                            " at most in 95 of 100 cases, as measured of its kind here");
  if (answer.has_expected_start())
    line("expected   ", local_time(unix_ms(answer.expected_start())));
  if (answer.has_latest_start()) line("latest     ", local_time(unix_ms(answer.latest_start())));
  return text;
}

}  // namespace

ExitStatus why(Session& session, const WhyOptions& options) {
  Console& console = session.console;
  Json document{{"jobs", Json::array()}};
  for (const std::string& id : resolve_job_ids(session, options.jobs)) {
    v1::ExplainJobRequest request;
    request.set_job_id(id);
    const v1::ExplainJobResponse answer = session.server.call(&Jobs::ExplainJob, request);
    if (console.format() == Format::kJsonl)
      console.record(explanation_json(answer));
    else if (console.format() == Format::kJson)
      document["jobs"].push_back(explanation_json(answer));
    else if (console.format() == Format::kName)
      console.data(id + "\n");
    else
      console.data(explanation_text(console, answer));
  }
  if (console.format() == Format::kJson) console.document(document);
  return ExitStatus::kOk;
}

}  // namespace quasi::client
