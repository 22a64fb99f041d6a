// Tests the documents of quasi.cli.v1 and the pages of text against files in golden/. To accept a
// deliberate change, run with QUASI_UPDATE_GOLDEN=1 and read the difference before committing it.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "client/commands/jobs.hpp"
#include "client/engine/local_check.hpp"
#include "client/views/job_view.hpp"
#include "client/views/outcome.hpp"

namespace quasi::client {
namespace {

constexpr std::int64_t kNow = 1772368205250;  // 2026-03-01T12:30:05.250Z

void expect_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path path = std::filesystem::path(QUASI_GOLDEN_DIR) / name;
  if (std::getenv("QUASI_UPDATE_GOLDEN") != nullptr) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  std::ifstream in(path);
  ASSERT_TRUE(in.good()) << "no golden file " << path;
  std::ostringstream golden;
  golden << in.rdbuf();
  EXPECT_EQ(text, golden.str()) << "differs from " << path;
}

void set_time(google::protobuf::Timestamp* time, std::int64_t age_s) {
  time->set_seconds(kNow / 1000 - age_s);
}

v1::Job queued_job() {
  v1::Job job;
  job.set_id("j_01J9QK3V8NXW2R5T7Y9A1C3E5G");
  job.mutable_spec()->set_name("silicon");
  (*job.mutable_spec()->mutable_labels())["project"] = "thesis";
  job.mutable_spec()->set_priority(5);
  job.set_priority(5);
  job.mutable_spec()->mutable_thermal()->set_deck("deck");
  v1::Setting& setting = *job.mutable_spec()->mutable_thermal()->add_settings();
  setting.set_key("T");
  setting.set_value("300");
  v1::Input& input = *job.mutable_spec()->add_inputs();
  input.set_slot("deck/CONTROL");
  input.set_digest(std::string(64, 'a'));
  input.set_size_bytes(1234);
  job.set_kind("thermal");
  job.set_state(v1::JOB_STATE_QUEUED);
  job.set_max_attempts(3);
  job.set_revision(1);
  set_time(job.mutable_created(), 300);
  return job;
}

v1::Job succeeded_job() {
  v1::Job job = queued_job();
  job.set_id("j_01J9QK3V8NXW2R5T7Y9A1C3E6H");
  job.set_state(v1::JOB_STATE_SUCCEEDED);
  job.set_attempts(1);
  set_time(job.mutable_started(), 200);
  set_time(job.mutable_ended(), 20);
  v1::Attempt& attempt = *job.add_attempt_history();
  attempt.set_number(1);
  attempt.set_id("a_01J9QK3V8NXW2R5T7Y9A1C3E5G");
  attempt.set_worker_name("gpu-box");
  attempt.add_device_ids("cpu");
  attempt.set_outcome(v1::ATTEMPT_OUTCOME_SUCCEEDED);
  *attempt.mutable_started() = job.started();
  *attempt.mutable_ended() = job.ended();
  attempt.mutable_isolation()->set_walls("network closed, files open (Landlock is off)");
  v1::Artifact& artifact = *job.add_artifacts();
  artifact.set_name("result.h5");
  artifact.set_digest(std::string(64, 'b'));
  artifact.set_size_bytes(4404019);
  artifact.set_media_type("application/x-hdf5");
  job.set_summary_json(R"({"temperatures_k":[300.0],"device":"cpu"})");
  return job;
}

v1::Job failed_job() {
  v1::Job job = queued_job();
  job.set_id("j_01J9QK3V8NXW2R5T7Y9A1C3E7J");
  job.set_state(v1::JOB_STATE_FAILED);
  job.set_attempts(3);
  set_time(job.mutable_started(), 100000);
  set_time(job.mutable_ended(), 90000);
  job.mutable_failure()->set_reason(v1::FAILURE_REASON_CHILD_CRASHED);
  job.mutable_failure()->set_message("the engine was killed");
  job.mutable_failure()->set_signal(11);
  return job;
}

v1::Job running_job() {
  v1::Job job = queued_job();
  job.set_id("j_01J9QK3V8NXW2R5T7Y9A1C3E8K");
  job.set_state(v1::JOB_STATE_RUNNING);
  job.set_attempts(1);
  set_time(job.mutable_started(), 65);
  job.mutable_progress()->set_phase("scattering 3ph");
  job.mutable_progress()->set_done(52);
  job.mutable_progress()->set_total(100);
  (*job.mutable_progress()->mutable_metrics())["residual"] = 3e-4;
  set_time(job.mutable_progress()->mutable_time(), 1);
  return job;
}

Console console(Format format) { return {format, Terminal{}, true, false}; }

TEST(ClientDocuments, JobsAsRows) {
  Json document{{"jobs", Json::array()}};
  for (const v1::Job& job : {queued_job(), running_job(), succeeded_job(), failed_job()})
    document["jobs"].push_back(job_json(job, Detail::kRow));
  expect_golden("list.json", document.dump(2) + "\n");
}

TEST(ClientDocuments, JobsInFull) {
  Json document{{"jobs", Json::array()}};
  for (const v1::Job& job : {succeeded_job(), failed_job()})
    document["jobs"].push_back(job_json(job, Detail::kFull));
  expect_golden("show.json", document.dump(2) + "\n");
}

TEST(ClientDocuments, Errors) {
  Failure failure(ExitStatus::kInvalidInput, "jobs[0].spec.name: too long", "shorten it");
  failure.reason = "FIELD_INVALID";
  failure.violations = {{"jobs[0].spec.name", "too long"}};
  expect_golden("error.json", error_document(failure).dump(2) + "\n");
}

TEST(ClientDocuments, TheTableOfJobs) {
  const std::vector<v1::Job> jobs{queued_job(), running_job(), succeeded_job(), failed_job()};
  expect_golden("list.txt", jobs_table(console(Format::kTable), jobs, kNow));
  expect_golden("list_wide.txt", jobs_table(console(Format::kWide), jobs, kNow));
  expect_golden("list_name.txt", jobs_table(console(Format::kName), jobs, kNow));
}

TEST(ClientDocuments, ThePageOfAJob) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  const Console plain = console(Format::kTable);
  expect_golden("show.txt", job_page(plain, running_job(), kNow) + "\n" +
                                job_page(plain, succeeded_job(), kNow) + "\n" +
                                job_page(plain, failed_job(), kNow));
}

TEST(ClientDocuments, WhatTheEnginePlans) {
  const Json report = Json::parse(
      R"({"ok": true, "warnings": ["positions do not match the force constants"],
          "plan": {"mesh": [8, 8, 8], "processes_3ph": {"absorption": 10, "emission": 20},
                   "processes_3ph_passes_per_iteration": 0,
                   "memory_bytes": 1234567890, "seconds_estimate": 252.0}})");
  expect_golden("validate.txt", report_text(console(Format::kTable), report));
}

// For a kind whose engine wrote no table, the client prints the summary's short values.
TEST(ClientDocuments, ASummaryWithoutATable) {
  EXPECT_EQ(
      summary_text(R"({"device":"cpu","kappa":[1.5,2],"long":")" + std::string(200, 'x') + R"("})"),
      "device  cpu\n"
      "kappa   [1.5,2]\n");
  EXPECT_EQ(summary_text("no json"), "");
}

// Newer servers may send states and reasons that this client does not know.
TEST(ClientDocuments, UnknownNumbersAreShownAsSuch) {
  v1::Job job = queued_job();
  job.set_state(static_cast<v1::JobState>(57));
  EXPECT_EQ(job_json(job, Detail::kRow)["state"], "UNKNOWN(57)");
  EXPECT_EQ(reason_word(static_cast<v1::FailureReason>(99)), "UNKNOWN(99)");
  for (const std::string& word : state_words()) EXPECT_EQ(state_word(state_of_word(word)), word);
}

}  // namespace
}  // namespace quasi::client
