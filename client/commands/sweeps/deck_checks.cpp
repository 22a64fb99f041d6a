#include "client/commands/sweeps/deck_checks.hpp"

#include <nlohmann/json.hpp>

#include "client/engine/local_check.hpp"
#include "proto/wire/sweeps/sweep.hpp"

namespace quasi::client {

void check_decks(Session& session, const std::vector<JobRequest>& requests, bool overlaid) {
  for (const JobRequest& request : requests) {
    if (request.deck.empty()) continue;
    if (overlaid) {
      session.console.note("not checked here: --input changes the deck; the worker checks it");
      return;
    }
    const DeckReport report = check_deck(request, "cpu");
    if (!report.checked) {
      session.console.note("not checked here: " + report.why_not + "; the worker checks it");
      return;
    }
    if (report.report.contains("warnings"))
      for (const Json& warning : report.report["warnings"])
        session.console.warn(request.source + ": " +
                             (warning.is_string() ? warning.get<std::string>() : warning.dump()));
  }
}

void check_sweep(Session& session, const SubmitOptions& options,
                 const std::vector<JobRequest>& requests, bool is_overlaid) {
  if (requests.size() != 1)
    throw Failure(ExitStatus::kUsage,
                  "--sweep: varies one job, and " + std::to_string(requests.size()) + " were given",
                  "submit each of them as a sweep of its own");
  const v1::Sweep sweep = sweep_of(options.job.sweep, requests.front().spec);
  check_sweep_limits(sweep, requests.front());
  if (options.no_check) return;
  std::vector<JobRequest> samples;
  for (const std::size_t index : samples_of(sweep)) {
    samples.push_back(requests.front());
    samples.back().spec = wire::job_of_sweep(sweep, index);
  }
  check_decks(session, samples, is_overlaid);
}

}  // namespace quasi::client
