#include "server/web/pages/overview_page.hpp"

#include <algorithm>
#include <cmath>

#include "quasi/v1/job.pb.h"
#include "server/web/words.hpp"

namespace quasi::server {
namespace {

constexpr std::size_t kMostDevices = 256;

std::int64_t sum_of(const std::vector<UnfinishedJobs>& rows, JobState from, JobState to) {
  std::int64_t sum = 0;
  for (const UnfinishedJobs& row : rows)
    if (row.state >= from && row.state <= to) sum += row.jobs;
  return sum;
}

void add_card(Html& html, const std::string& name, const std::string& value,
              const std::string& small) {
  html.markup("<div><dt>").text(name).markup("</dt><dd>").text(value);
  if (!small.empty()) html.markup(" <small>").text(small).markup("</small>");
  html.markup("</dd></div>\n");
}

void add_cards(Html& html, const Overview& page) {
  const auto [ready, all] = [&] {
    std::pair<std::int64_t, std::int64_t> count;
    for (const WorkerStatus& worker : page.workers)
      for (const DeviceStatus& device : worker.devices) {
        ++count.second;
        count.first += worker.online && !worker.draining && device.state == DeviceState::kReady;
      }
    return count;
  }();
  html.markup("<dl class=\"cards\">\n");
  add_card(html, "Running jobs",
           std::to_string(sum_of(page.everybody, JobState::kLeased, JobState::kCancelling)), "");
  add_card(html, "Waiting jobs",
           std::to_string(sum_of(page.everybody, JobState::kBlocked, JobState::kQueued)), "");
  add_card(html, "Devices ready", std::to_string(ready), "of " + std::to_string(all));
  add_card(html, "Disk free", shown_bytes_of(page.state.free_bytes),
           "of " + shown_bytes_of(page.state.total_bytes));
  add_card(html, "Stored files", shown_bytes_of(page.stored.bytes),
           std::to_string(page.stored.files) + " files");
  html.markup("</dl>\n");
}

void add_alarms(Html& html, const Overview& page) {
  const auto alarm = [&](const std::string& text) {
    html.markup("<p class=\"alarm\" role=\"status\">").text(text).markup("</p>\n");
  };
  if (page.state.is_stopping) alarm("The server is stopping; running jobs go on.");
  if (page.state.storage_low)
    alarm("The disk is nearly full. New work is refused, and running work goes on.");
  if (page.state.corrupt_files > 0)
    alarm(
        std::to_string(page.state.corrupt_files) +
        " stored files were found damaged since the start; quasi-server check --deep names them.");
}

/// A table with one row for each pool: the sums of all jobs, and of those that the visitor sees.
void add_queue(Html& html, const Overview& page) {
  struct Pool {
    std::int64_t waiting = 0, running = 0, seen_waiting = 0, seen_running = 0, oldest_ms = 0;
  };
  std::map<std::string, Pool> pools;
  for (const UnfinishedJobs& row : page.everybody) {
    Pool& pool = pools[row.pool];
    (row.state >= JobState::kLeased ? pool.running : pool.waiting) += row.jobs;
    if (row.state == JobState::kQueued) pool.oldest_ms = row.oldest_created_ms;
  }
  for (const UnfinishedJobs& row : page.visible) {
    Pool& pool = pools[row.pool];
    (row.state >= JobState::kLeased ? pool.seen_running : pool.seen_waiting) += row.jobs;
  }
  html.markup("<section aria-labelledby=\"queue\">\n<h2 id=\"queue\">Queue</h2>\n");
  html.markup("<dl class=\"cards\">\n<div><dt>Waiting, last 30 min</dt><dd>");
  add_spark_line(html, page.queued, 0, "waiting jobs in the last half hour");
  html.markup("</dd></div>\n<div><dt>Running, last 30 min</dt><dd>");
  add_spark_line(html, page.running, 0, "running jobs in the last half hour");
  html.markup("</dd></div>\n</dl>\n");
  if (pools.empty()) {
    html.markup("<p>No job waits or runs.</p>\n</section>\n");
    return;
  }
  html.markup("<div class=\"scroll\" tabindex=\"0\"><table>\n<caption>");
  if (page.has_jobs)
    html.markup("Jobs of everybody, and those that you may see</caption>\n");
  else
    html.markup("Jobs of everybody</caption>\n");
  html.markup(
          "<thead><tr><th scope=\"col\">Pool</th><th scope=\"col\" class=\"number\">Waiting</th>")
      .markup("<th scope=\"col\" class=\"number\">Running</th>");
  if (page.has_jobs)
    html.markup("<th scope=\"col\" class=\"number\">Yours waiting</th>")
        .markup("<th scope=\"col\" class=\"number\">Yours running</th>");
  html.markup("<th scope=\"col\">Oldest in queue</th></tr></thead>\n<tbody>\n");
  for (const auto& [name, pool] : pools) {
    html.markup("<tr><th scope=\"row\">").text(name).markup("</th>");
    const auto cell = [&](std::int64_t n) {
      html.markup("<td class=\"number\">").number(n).markup("</td>");
    };
    cell(pool.waiting);
    cell(pool.running);
    if (page.has_jobs) {
      cell(pool.seen_waiting);
      cell(pool.seen_running);
    }
    html.markup("<td>")
        .text(pool.oldest_ms > 0
                  ? shown_duration(std::max<std::int64_t>(0, page.now_ms - pool.oldest_ms))
                  : "–")
        .markup("</td></tr>\n");
  }
  html.markup("</tbody></table></div>\n</section>\n");
}

void add_head(Html& html) {
  html.markup("<thead><tr><th scope=\"col\">Job</th><th scope=\"col\">State</th>")
      .markup("<th scope=\"col\" class=\"rare\">Kind</th><th scope=\"col\">Owner</th>")
      .markup("<th scope=\"col\">Progress</th><th scope=\"col\" class=\"number\">Age</th>")
      .markup("</tr></thead>\n<tbody>\n");
}

void add_jobs(Html& html, const Overview& page, const std::vector<JobView>& jobs) {
  html.markup("<div class=\"scroll\" tabindex=\"0\"><table>\n");
  add_head(html);
  for (const JobView& job : jobs) {
    html.markup("<tr><th scope=\"row\">");
    add_job_link(html, job.row.uid, job.row.name);
    html.markup("</th><td>");
    add_state(html, job.row.state);
    html.markup("</td><td class=\"rare\">").text(job.row.kind).markup("</td><td>");
    html.text(job.owner).markup("</td><td>");
    add_progress(html, job.progress);
    html.markup("</td><td class=\"number\">")
        .text(shown_duration(std::max<std::int64_t>(0, page.now_ms - job.row.created_ms)))
        .markup("</td></tr>\n");
  }
  html.markup("</tbody></table></div>\n");
}

void add_failures(Html& html, const Overview& page) {
  html.markup("<section aria-labelledby=\"failures\">\n<h2 id=\"failures\">Recent failures</h2>\n");
  if (page.failed.empty()) {
    html.markup("<p>None of the jobs that you may see has failed.</p>\n</section>\n");
    return;
  }
  html.markup("<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr><th scope=\"col\">Job</th>")
      .markup("<th scope=\"col\">Reason</th><th scope=\"col\">Message</th>")
      .markup("<th scope=\"col\" class=\"number\">Ago</th></tr></thead>\n<tbody>\n");
  for (const JobView& job : page.failed) {
    html.markup("<tr><th scope=\"row\">");
    add_job_link(html, job.row.uid, job.row.name);
    html.markup("</th><td class=\"state bad\">")
        .text(lower_case(name_of(job.row.failure.reason)))
        .markup("</td><td>")
        .text(job.row.failure.message.substr(0, 300))
        .markup("</td><td class=\"number\">")
        .text(shown_duration(std::max<std::int64_t>(0, page.now_ms - job.row.ended_ms)))
        .markup("</td></tr>\n");
  }
  html.markup("</tbody></table></div>\n</section>\n");
}

/// Adds the state of a worker as one word in its colour.
void add_worker_state(Html& html, const WorkerStatus& worker) {
  if (!worker.online)
    html.markup("<span class=\"state bad\">lost</span>");
  else if (worker.draining)
    html.markup("<span class=\"state wait\">draining</span>");
  else
    html.markup("<span class=\"state good\">online</span>");
}

void add_device(Html& html, const Overview& page, const WorkerStatus& worker,
                const DeviceStatus& device) {
  const auto history = page.devices.find(worker.worker.id + "/" + device.device.id);
  const DeviceHistory past = history == page.devices.end() ? DeviceHistory{} : history->second;
  const std::int64_t used =
      std::max<std::int64_t>(0, device.device.memory_bytes - device.free_bytes);
  html.markup("<tr><th scope=\"row\">").text(device.device.model);
  if (!device.device.model.empty()) html.markup("<br>");
  html.markup("<span class=\"id soft\">").text(device.device.id).markup("</span></th><td>");
  add_worker_state(html, worker);
  html.markup("<br>").text(worker.worker.name).markup("</td><td>");
  if (device.state == DeviceState::kReady)
    html.markup("<span class=\"state good\">ready</span>");
  else
    html.markup("<span class=\"state bad\">").text(word_of(device.state)).markup("</span><br>");
  html.text(device.state_reason).markup("</td><td>");
  std::int64_t busy = 0;
  for (const OpenSlot& slot : page.slots) {
    const auto& ids = slot.device_ids;
    if (slot.worker_id != worker.worker.id ||
        std::find(ids.begin(), ids.end(), device.device.id) == ids.end())
      continue;
    ++busy;
    if (!slot.job_uid.empty()) add_job_link(html, slot.job_uid, slot.job_uid.substr(0, 12));
    html.markup(" ");
  }
  if (page.has_jobs) html.number(busy).markup(" of ");
  html.number(device.device.slots).text(device.device.slots == 1 ? " slot" : " slots");
  html.markup("</td><td>").text(shown_share(device.utilization));
  add_spark_line(html, past.utilization, 1, "utilization in the last half hour");
  html.markup("</td><td>").text(shown_bytes_of(used)).markup(" of ");
  html.text(shown_bytes_of(device.device.memory_bytes));
  add_spark_line(html, past.memory, 1, "used memory in the last half hour");
  html.markup("</td><td class=\"rare\">");
  if (device.temperature_c > 0) html.number(std::lround(device.temperature_c)).markup(" °C ");
  if (device.power_watts > 0) html.number(std::lround(device.power_watts)).markup(" W");
  html.markup("</td></tr>\n");
}

void add_devices(Html& html, const Overview& page) {
  html.markup(
      "<section aria-labelledby=\"devices\">\n<h2 id=\"devices\">Workers and devices</h2>\n");
  if (page.workers.empty()) {
    html.markup("<p>No worker has registered since the server started.</p>\n</section>\n");
    return;
  }
  html.markup("<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>")
      .markup("<th scope=\"col\">Device</th><th scope=\"col\">Worker</th>")
      .markup("<th scope=\"col\">State</th><th scope=\"col\">Jobs</th>")
      .markup("<th scope=\"col\">Utilization</th><th scope=\"col\">Memory</th>")
      .markup("<th scope=\"col\" class=\"rare\">Sensors</th></tr></thead>\n<tbody>\n");
  std::size_t n = 0, more = 0;
  for (const WorkerStatus& worker : page.workers)
    for (const DeviceStatus& device : worker.devices)
      if (++n <= kMostDevices)
        add_device(html, page, worker, device);
      else
        ++more;
  html.markup("</tbody></table></div>\n");
  if (more > 0)
    html.markup("<p>")
        .number(static_cast<std::int64_t>(more))
        .markup(" more devices; quasi devices lists all.</p>\n");
  html.markup("</section>\n");
}

}  // namespace

void add_job_link(Html& html, const std::string& uid, const std::string& name) {
  html.markup("<a href=\"/jobs/").text(uid).markup("\">");
  html.text(name.empty() ? uid.substr(0, 12) : name).markup("</a>");
}

void add_state(Html& html, JobState state) {
  if (state == JobState::kFailed)
    html.markup("<span class=\"state bad\">");
  else if (state == JobState::kSucceeded || state == JobState::kRunning)
    html.markup("<span class=\"state good\">");
  else
    html.markup("<span class=\"state wait\">");
  html.text(lower_case(name_of(state))).markup("</span>");
}

void add_progress(Html& html, const std::string& serialised) {
  v1::Progress progress;
  if (serialised.empty() || !progress.ParseFromString(serialised)) return;
  html.text(progress.phase());
  if (progress.total() <= 0) return;
  html.markup(" ");
  add_bar(html, static_cast<double>(progress.done()), static_cast<double>(progress.total()),
          "progress of " + progress.phase());
}

Html overview_content(const Overview& page) {
  Html html;
  html.markup("<h1>Status</h1>\n");
  add_alarms(html, page);
  add_cards(html, page);
  add_queue(html, page);
  if (page.has_jobs) {
    html.markup("<section aria-labelledby=\"running\">\n<h2 id=\"running\">Running jobs</h2>\n");
    if (page.open.empty())
      html.markup("<p>None of the jobs that you may see runs.</p>\n");
    else
      add_jobs(html, page, page.open);
    html.markup("</section>\n");
    if (!page.waiting.empty()) {
      html.markup("<section aria-labelledby=\"waiting\">\n<h2 id=\"waiting\">Newest waiting jobs")
          .markup("</h2>\n");
      add_jobs(html, page, page.waiting);
      html.markup("</section>\n");
    }
    add_failures(html, page);
  }
  add_devices(html, page);
  return html;
}

}  // namespace quasi::server
