#include "server/web/pages/job_page.hpp"

#include <algorithm>

#include "quasi/v1/job.pb.h"
#include "server/web/pages/overview_page.hpp"
#include "server/web/words.hpp"

namespace quasi::server {
namespace {

std::int64_t between(std::int64_t from_ms, std::int64_t to_ms) {
  return std::max<std::int64_t>(0, to_ms - from_ms);
}

/// The progress with its bar, and the figures of the computation such as residuals.
void add_figures(Html& html, const JobPage& page) {
  v1::Progress progress;
  if (page.job.progress.empty() || !progress.ParseFromString(page.job.progress)) return;
  html.markup("<section aria-labelledby=\"figures\">\n<h2 id=\"figures\">Progress</h2>\n<p>")
      .text(progress.phase());
  if (progress.total() > 0)
    html.markup(": ").number(progress.done()).markup(" of ").number(progress.total());
  html.markup("</p>\n");
  if (progress.total() > 0) {
    html.markup("<p class=\"wide\">");
    add_bar(html, static_cast<double>(progress.done()), static_cast<double>(progress.total()),
            "progress of " + progress.phase());
    html.markup("</p>\n");
  }
  const std::map<std::string, double> metrics(progress.metrics().begin(), progress.metrics().end());
  if (!metrics.empty()) {
    html.markup("<dl class=\"cards\">\n");
    for (const auto& [name, value] : metrics)
      html.markup("<div><dt>")
          .text(name)
          .markup("</dt><dd>")
          .text(shown_number_of(value))
          .markup("</dd></div>\n");
    html.markup("</dl>\n");
  }
  html.markup("</section>\n");
}

void add_facts(Html& html, const JobPage& page) {
  const JobRow& row = page.job.row;
  const auto fact = [&](const std::string& name, const std::string& value) {
    if (!value.empty())
      html.markup("<dt>").text(name).markup("</dt><dd>").text(value).markup("</dd>\n");
  };
  html.markup("<dl class=\"facts\">\n<dt>State</dt><dd>");
  add_state(html, row.state);
  html.markup("</dd>\n");
  if (row.failure.reason != FailureReason::kNone)
    fact("Last failure", lower_case(name_of(row.failure.reason)) + ": " + row.failure.message);
  fact("Id", row.uid);
  fact("Kind", row.kind);
  fact("Owner", page.job.owner);
  fact("Pool", row.pool);
  if (row.gpus > 0) fact("GPUs", std::to_string(row.gpus));
  if (row.memory_bytes > 0) fact("Memory of each GPU", shown_bytes_of(row.memory_bytes));
  fact("Priority", std::to_string(row.priority));
  fact("Limit of an attempt", shown_duration(row.max_runtime_ms));
  fact("Submitted", shown_time(row.created_ms));
  if (row.started_ms > 0) {
    fact("Started", shown_time(row.started_ms));
    fact(row.ended_ms > 0 ? "Ran" : "Runs for",
         shown_duration(between(row.started_ms, row.ended_ms > 0 ? row.ended_ms : page.now_ms)));
  }
  if (row.ended_ms > 0) fact("Ended", shown_time(row.ended_ms));
  if (page.job.checkpoint)
    fact("Newest checkpoint", "step " + std::to_string(page.job.checkpoint->step) + ", " +
                                  shown_bytes_of(page.job.checkpoint->size_bytes) + ", " +
                                  shown_time(page.job.checkpoint->created_ms));
  v1::JobSpec spec;
  if (spec.ParseFromString(page.job.spec))
    for (const auto& [key, value] :
         std::map<std::string, std::string>(spec.labels().begin(), spec.labels().end()))
      fact("Label " + key, value);
  html.markup("</dl>\n");
}

void add_attempts(Html& html, const JobPage& page) {
  html.markup("<section aria-labelledby=\"attempts\">\n<h2 id=\"attempts\">Attempts</h2>\n");
  if (page.attempts.empty()) {
    html.markup("<p>No worker has taken it yet. quasi why ")
        .text(page.job.row.uid)
        .markup(" tells what it waits for.</p>\n</section>\n");
    return;
  }
  html.markup("<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>")
      .markup("<th scope=\"col\" class=\"number\">No.</th><th scope=\"col\">Outcome</th>")
      .markup("<th scope=\"col\">Worker</th><th scope=\"col\" class=\"rare\">Devices</th>")
      .markup("<th scope=\"col\">Granted</th><th scope=\"col\" class=\"number\">Took</th>")
      .markup("<th scope=\"col\" class=\"number rare\">GPU memory</th></tr></thead>\n<tbody>\n");
  for (const AttemptRow& attempt : page.attempts) {
    html.markup("<tr><th scope=\"row\" class=\"number\">").number(attempt.number);
    html.markup("</th><td>").text(word_of(attempt.outcome));
    const std::string why =
        attempt.failure.message.empty() ? attempt.release_message : attempt.failure.message;
    if (!why.empty()) html.markup("<br><span class=\"soft\">").text(why).markup("</span>");
    const auto name = page.worker_names.find(attempt.worker_id);
    html.markup("</td><td>")
        .text(name == page.worker_names.end() ? attempt.worker_id : name->second)
        .markup("</td><td class=\"rare id\">");
    for (const std::string& device : attempt.device_ids) html.text(device).markup(" ");
    const std::int64_t end = attempt.ended_ms > 0 ? attempt.ended_ms : page.now_ms;
    html.markup("</td><td>").text(shown_time(attempt.granted_ms));
    html.markup("</td><td class=\"number\">")
        .text(shown_duration(between(attempt.granted_ms, end)))
        .markup("</td><td class=\"number rare\">")
        .text(attempt.usage.peak_gpu_bytes > 0 ? shown_bytes_of(attempt.usage.peak_gpu_bytes) : "–")
        .markup("</td></tr>\n");
  }
  html.markup("</tbody></table></div>\n</section>\n");
}

void add_artifacts(Html& html, const JobPage& page) {
  if (page.artifacts.empty()) return;
  html.markup("<section aria-labelledby=\"results\">\n<h2 id=\"results\">Results</h2>\n")
      .markup("<div class=\"scroll\" tabindex=\"0\"><table>\n<caption>quasi fetch ")
      .text(page.job.row.uid)
      .markup(" brings them, verified</caption>\n<thead><tr><th scope=\"col\">Name</th>")
      .markup("<th scope=\"col\" class=\"number\">Size</th>")
      .markup("<th scope=\"col\" class=\"rare\">SHA-256</th></tr></thead>\n<tbody>\n");
  for (const ArtifactRow& artifact : page.artifacts)
    html.markup("<tr><th scope=\"row\">")
        .text(artifact.name)
        .markup("</th><td class=\"number\">")
        .text(shown_bytes_of(artifact.size_bytes))
        .markup("</td><td class=\"rare id\">")
        .text(artifact.digest.substr(0, 16))
        .markup("…</td></tr>\n");
  html.markup("</tbody></table></div>\n</section>\n");
}

void add_changes(Html& html, const JobPage& page) {
  html.markup("<section aria-labelledby=\"history\">\n<h2 id=\"history\">History</h2>\n")
      .markup("<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>")
      .markup("<th scope=\"col\">Time</th><th scope=\"col\">State</th>")
      .markup("<th scope=\"col\" class=\"number\">Attempt</th><th scope=\"col\">Message</th>")
      .markup("</tr></thead>\n<tbody>\n");
  for (const EventRow& change : page.changes) {
    html.markup("<tr><th scope=\"row\">").text(shown_time(change.time_ms)).markup("</th><td>");
    add_state(html, change.to);
    html.markup("</td><td class=\"number\">");
    if (change.attempt > 0) html.number(change.attempt);
    html.markup("</td><td>")
        .text(change.message.empty() ? change.failure.message : change.message)
        .markup("</td></tr>\n");
  }
  html.markup("</tbody></table></div>\n</section>\n");
}

void add_log(Html& html, const JobPage& page) {
  if (page.log_bytes == 0) return;
  html.markup("<section aria-labelledby=\"log\">\n<h2 id=\"log\">Log of the newest attempt</h2>\n");
  const auto shown = static_cast<std::int64_t>(page.log_tail.size());
  if (shown < page.log_bytes)
    html.markup("<p class=\"soft\">The last ")
        .text(shown_bytes_of(shown))
        .markup(" of ")
        .text(shown_bytes_of(page.log_bytes))
        .markup("; quasi logs ")
        .text(page.job.row.uid)
        .markup(" prints all.</p>\n");
  html.markup("<pre tabindex=\"0\">").text(page.log_tail).markup("</pre>\n</section>\n");
}

}  // namespace

Html job_content(const JobPage& page) {
  Html html;
  html.markup("<h1>")
      .text(page.job.row.name.empty() ? page.job.row.uid : page.job.row.name)
      .markup("</h1>\n");
  add_facts(html, page);
  add_figures(html, page);
  add_attempts(html, page);
  add_artifacts(html, page);
  add_changes(html, page);
  add_log(html, page);
  return html;
}

}  // namespace quasi::server
