// Tests the web page of a job that has ended. It shows the facts of the job, its attempts, its
// result files, and the last lines of a long log.

#include <gtest/gtest.h>

#include "quasi/v1/job.pb.h"
#include "server/web/pages/job_page.hpp"
#include "server/web/words.hpp"

namespace quasi::server {
namespace {

constexpr std::int64_t kNowMs = 1'795'729'914'000;

/// A job that succeeded in its second attempt, a minute ago.
JobPage succeeded() {
  v1::JobSpec spec;
  (*spec.mutable_labels())["project"] = "<b>thesis</b>";
  JobPage page{.now_ms = kNowMs};
  JobRow& row = page.job.row;
  row.uid = "j_00000000000000000000000001";
  row.name = "silicon";
  row.state = JobState::kSucceeded;
  row.gpus = 2;
  row.memory_bytes = 40'000'000'000;
  row.priority = -3;
  row.created_ms = kNowMs - 600'000;
  row.started_ms = kNowMs - 180'000;
  row.ended_ms = kNowMs - 60'000;
  page.job.spec = spec.SerializeAsString();
  page.job.checkpoint = CheckpointRow{.sequence = 2,
                                      .step = 41,
                                      .digest = "c",
                                      .size_bytes = 5'000,
                                      .fence = 8,
                                      .created_ms = kNowMs - 70'000};
  AttemptRow second{.number = 2, .worker_id = "w_1"};
  second.outcome = AttemptOutcome::kSucceeded;
  second.granted_ms = row.started_ms;
  second.ended_ms = row.ended_ms;
  second.usage.peak_gpu_bytes = 3'000'000'000;
  AttemptRow first{.number = 1, .worker_id = "w_1"};
  first.outcome = AttemptOutcome::kExpired;
  page.attempts = {second, first};
  page.worker_names["w_1"] = "north";
  page.artifacts = {{.name = "result.h5", .digest = std::string(64, 'a'), .size_bytes = 1'340'000}};
  EventRow change{.time_ms = row.ended_ms, .to = JobState::kSucceeded};
  change.attempt = 2;
  change.failure.message = "as planned";
  page.changes = {change};
  page.log_tail = "step 40\nstep 41\n";
  page.log_bytes = 9'000;
  return page;
}

void expect_says(const std::string& html, const std::string& words) {
  EXPECT_NE(html.find(words), std::string::npos) << words << " in\n" << html;
}

TEST(JobContent, OfASuccessHasItsFactsAndResults) {
  const std::string html = job_content(succeeded()).str();
  for (const char* fact :
       {"<dt>GPUs</dt><dd>2</dd>", "<dt>Memory of each GPU</dt><dd>40.0 GB</dd>",
        "<dt>Priority</dt><dd>-3</dd>", "<dt>Ran</dt><dd>2 min 0 s</dd>", "<dt>Ended</dt>",
        "step 41, 5.0 kB", "<dt>Label project</dt><dd>&lt;b&gt;thesis&lt;/b&gt;</dd>"})
    expect_says(html, fact);
  expect_says(html, "quasi fetch j_00000000000000000000000001 brings them, verified");
  expect_says(html, "<th scope=\"row\">result.h5</th><td class=\"number\">1.3 MB</td>");
  expect_says(html, "aaaaaaaaaaaaaaaa…");
  expect_says(html, "north");
  expect_says(html, "expired");
  expect_says(html, "3.0 GB");
  expect_says(html, "<td>as planned</td>");
}

TEST(JobContent, ShowsTheEndOfALongLog) {
  JobPage page = succeeded();
  const std::string html = job_content(page).str();
  expect_says(html, "The last 16 B of 9.0 kB; quasi logs j_00000000000000000000000001 prints all.");
  expect_says(html, "<pre tabindex=\"0\">step 40\nstep 41\n</pre>");
  page.log_bytes = static_cast<std::int64_t>(page.log_tail.size());
  EXPECT_EQ(job_content(page).str().find("prints all"), std::string::npos) << "it is whole";
  page.log_bytes = 0;
  page.artifacts.clear();
  const std::string bare = job_content(page).str();
  EXPECT_EQ(bare.find("id=\"log\""), std::string::npos);
  EXPECT_EQ(bare.find("id=\"results\""), std::string::npos);
}

TEST(JobContent, OfARunningJobCountsItsTime) {
  JobPage page = succeeded();
  page.job.row.state = JobState::kRunning;
  page.job.row.ended_ms = 0;
  page.job.row.name.clear();
  const std::string html = job_content(page).str();
  expect_says(html, "<h1>j_00000000000000000000000001</h1>");
  expect_says(html, "<dt>Runs for</dt><dd>3 min 0 s</dd>");
  EXPECT_EQ(html.find("<dt>Ended</dt>"), std::string::npos);
}

// The words stand on the page and in the metrics, where alert rules name them.
TEST(PageWords, NameEachStateOfAttemptsAndDevices) {
  using Outcome = AttemptOutcome;
  EXPECT_EQ(word_of(Outcome::kOpen), "open");
  EXPECT_EQ(word_of(Outcome::kSucceeded), "succeeded");
  EXPECT_EQ(word_of(Outcome::kFailed), "failed");
  EXPECT_EQ(word_of(Outcome::kCancelled), "cancelled");
  EXPECT_EQ(word_of(Outcome::kReleased), "released");
  EXPECT_EQ(word_of(Outcome::kExpired), "expired");
  EXPECT_EQ(word_of(static_cast<Outcome>(99)), "unknown");
  EXPECT_EQ(word_of(DeviceState::kUnsaid), "unknown");
  EXPECT_EQ(word_of(DeviceState::kReady), "ready");
  EXPECT_EQ(word_of(DeviceState::kBusyForeign), "busy_foreign");
  EXPECT_EQ(word_of(DeviceState::kQuarantined), "quarantined");
  EXPECT_EQ(word_of(DeviceState::kCordoned), "cordoned");
  EXPECT_EQ(word_of(DeviceState::kLost), "lost");
  EXPECT_EQ(word_of(static_cast<DeviceState>(99)), "unknown");
}

}  // namespace
}  // namespace quasi::server
