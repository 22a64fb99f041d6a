#include "client/commands/orders/orders.hpp"

#include <google/protobuf/util/time_util.h>

#include <nlohmann/json.hpp>

#include "client/commands/turns/id_parts.hpp"
#include "client/input/job_ids.hpp"
#include "client/views/readable.hpp"

namespace quasi::client {
namespace {

/// Fills the fields that both orders about workers have.
template <class Request>
void fill(const std::vector<std::string>& words, const OrderOptions& options, Request& request) {
  request.set_worker(words[1]);
  request.set_end(words[0].starts_with("un"));
  request.set_reason(options.reason);
  if (options.within.empty()) return;
  const auto seconds = parse_duration_seconds(options.within);
  if (!seconds || *seconds < 0.0)
    throw Failure(ExitStatus::kUsage, "--within: '" + options.within + "' is not a time",
                  "write it like 30m or 12h");
  *request.mutable_within() = google::protobuf::util::TimeUtil::MillisecondsToDuration(
      static_cast<std::int64_t>(*seconds * 1e3));
}

template <class Response>
ExitStatus report(Session& session, const std::vector<std::string>& words,
                  const Response& response) {
  const bool back = words[0].starts_with("un");
  if (session.console.json()) {
    session.console.document({{"worker", response.worker_id()},
                              {"device", words.size() > 2 ? Json(words[2]) : Json()},
                              {"in_service", back},
                              {"jobs_staying", response.jobs_staying()},
                              {"jobs_leaving", response.jobs_leaving()}});
    return ExitStatus::kOk;
  }
  const std::string subject = words.size() > 2 ? words[2] + " of " + words[1] : words[1];
  session.console.data(printable(subject) +
                       (back ? " is back in service\n"
                             : " is out of service; running jobs that end there: " +
                                   std::to_string(response.jobs_staying()) +
                                   ", that go back to the queue with a checkpoint: " +
                                   std::to_string(response.jobs_leaving()) + "\n"));
  return ExitStatus::kOk;
}

ExitStatus preempt(Session& session, const std::vector<std::string>& words,
                   const OrderOptions& options) {
  const std::vector<std::string> ids = resolve_job_ids(session, {words.begin() + 1, words.end()});
  send_in_parts<v1::PreemptJobsRequest>(ids, [&](v1::PreemptJobsRequest& request) {
    request.set_reason(options.reason);
    session.server.call(&Admin::PreemptJobs, request);
  });
  if (session.console.json())
    session.console.document({{"preempted", ids}});
  else
    for (const std::string& id : ids)
      session.console.data(id + "  writes a checkpoint and goes back to the queue\n");
  return ExitStatus::kOk;
}

}  // namespace

bool is_order(const std::string& action) {
  return action == "drain" || action == "undrain" || action == "cordon" || action == "uncordon" ||
         action == "preempt";
}

ExitStatus order(Session& session, const std::vector<std::string>& words,
                 const OrderOptions& options) {
  const bool about_device = words[0].ends_with("cordon");
  if (words[0] == "preempt" ? words.size() < 2 : words.size() != (about_device ? 3U : 2U))
    throw Failure(ExitStatus::kUsage,
                  words[0] + " got " + std::to_string(words.size() - 1) + " names",
                  "write: quasi admin drain WORKER | undrain WORKER | cordon WORKER DEVICE | "
                  "uncordon WORKER DEVICE | preempt JOB...");
  if (words[0] == "preempt") return preempt(session, words, options);
  if (!about_device) {
    v1::DrainWorkerRequest request;
    fill(words, options, request);
    return report(session, words, session.server.call(&Admin::DrainWorker, request));
  }
  v1::CordonDeviceRequest request;
  fill(words, options, request);
  request.set_device(words[2]);
  request.set_evict(options.evict);
  return report(session, words, session.server.call(&Admin::CordonDevice, request));
}

}  // namespace quasi::client
