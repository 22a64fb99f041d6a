// Tests GET /metrics: the text, the counts against known jobs, who may read it, and that a scrape
// waits for no writer.

#include <sqlite3.h>
#include <sys/stat.h>

#include <cstdio>
#include <ctime>
#include <set>

#include "server/access/certificates.hpp"
#include "server/figures/exposition.hpp"
#include "tests/service/server/web/web_fixture.hpp"
#include "tests/support/reference_data.hpp"

namespace quasi::server {
namespace {

TEST(Exposition, WritesTheTextFormatOfPrometheus) {
  static constexpr double kBounds[] = {0.5, 2};
  Histogram histogram(kBounds);
  for (const double value : {0.25, 0.5, 1.0, 4.0}) histogram.observe(value);
  Exposition out;
  out.family("a_total", "counter", "Help.");
  out.sample({{"kind", "say \"hi\"\\\n"}}, 3);
  out.sample(0.125);
  out.family("b", "histogram", "Times.");
  out.sample({{"k", "v"}}, histogram.view());
  EXPECT_EQ(out.text(),
            "# HELP a_total Help.\n# TYPE a_total counter\n"
            "a_total{kind=\"say \\\"hi\\\"\\\\\\n\"} 3\na_total 0.125\n"
            "# HELP b Times.\n# TYPE b histogram\n"
            "b_bucket{k=\"v\",le=\"0.5\"} 2\nb_bucket{k=\"v\",le=\"2\"} 3\n"
            "b_bucket{k=\"v\",le=\"+Inf\"} 4\nb_sum{k=\"v\"} 5.75\nb_count{k=\"v\"} 4\n");
}

class Metrics : public Web {};

TEST_F(Metrics, CountJobsAttemptsAndCalls) {
  for (int i = 0; i < 3; ++i) submit();
  EXPECT_EQ(sample("quasi_jobs{state=\"queued\",pool=\"default\"}"), 3);
  register_worker();
  expect_ok(end_job(start_job(), v1::ATTEMPT_OUTCOME_SUCCEEDED));
  const v1::AttemptRef failed = start_job();
  expect_ok(end_job(failed, v1::ATTEMPT_OUTCOME_FAILED));
  v1::AttemptRef old = failed;
  old.set_fence(failed.fence() - 1);
  EXPECT_EQ(end_job(old, v1::ATTEMPT_OUTCOME_SUCCEEDED).error_code(), grpc::StatusCode::ABORTED);
  start_job();
  const auto samples = scrape();
  const auto expect = [&](const std::string& name, double value) {
    const auto found = samples.find(name);
    ASSERT_NE(found, samples.end()) << name;
    EXPECT_EQ(found->second, value) << name;
  };
  expect("quasi_jobs{state=\"running\",pool=\"default\"}", 1);
  EXPECT_FALSE(samples.contains("quasi_jobs{state=\"queued\",pool=\"default\"}"));
  expect("quasi_jobs_submitted_total{kind=\"test\"}", 3);
  expect("quasi_jobs_finished_total{kind=\"test\",outcome=\"succeeded\",reason=\"none\"}", 1);
  expect("quasi_jobs_finished_total{kind=\"test\",outcome=\"failed\",reason=\"numerical\"}", 1);
  expect("quasi_job_wait_seconds_count{kind=\"test\"}", 3);
  expect("quasi_job_run_seconds_count{kind=\"test\"}", 2);
  expect("quasi_attempts_total{outcome=\"succeeded\"}", 1);
  expect("quasi_attempts_total{outcome=\"failed\"}", 1);
  expect("quasi_rpc_seconds_count{method=\"SubmitJobs\",code=\"OK\"}", 3);
  expect("quasi_rpc_seconds_count{method=\"CompleteAttempt\",code=\"ABORTED\"}", 1);
  expect("quasi_fenced_writes_total{rpc=\"CompleteAttempt\"}", 1);
  expect("quasi_rpc_inflight{method=\"SubmitJobs\"}", 0);
  expect("quasi_db_queue_depth", samples.at("quasi_db_queue_depth"));
  EXPECT_GE(samples.at("quasi_db_batch_size_count"), 8);
  EXPECT_EQ(samples.at("quasi_db_batch_size_count"), samples.at("quasi_db_commit_seconds_count"));
  EXPECT_GT(samples.at("quasi_storage_free_bytes"), 0);
}

TEST_F(Metrics, CountCancelsAndExpiredLeases) {
  server_.reset();
  options_.queue.lease_ttl_ms = 300;
  options_.queue.requeue_delay_ms = 0;
  start();
  register_worker();
  submit();
  start_job();
  EXPECT_TRUE(wait_for([&] { return sample("quasi_leases_expired_total") == 1; }));
  cancel(submit());
  EXPECT_EQ(
      sample("quasi_jobs_finished_total{kind=\"test\",outcome=\"cancelled\",reason=\"none\"}"), 1);
  EXPECT_EQ(sample("quasi_cancel_seconds_count"), 1);
}

TEST_F(Metrics, DescribeTheDevicesOfWorkersThatAreOnline) {
  register_worker();
  const std::string labels =
      "{pool=\"default\",worker=\"node7\",worker_id=\"" + worker_ + "\",device=\"cpu<b>\"";
  EXPECT_TRUE(
      wait_for([&] { return sample("quasi_device_state" + labels + ",state=\"ready\"}") == 1; }));
  EXPECT_EQ(sample("quasi_device_memory_used_bytes" + labels + "}"), 1U << 28);
  EXPECT_EQ(sample("quasi_workers{pool=\"default\",state=\"online\"}"), 1);
}

/// The lock that the writer of the database needs for every commit.
class WriteLock {
 public:
  explicit WriteLock(const std::string& path) {
    EXPECT_EQ(sqlite3_open(path.c_str(), &handle_), SQLITE_OK);
    sqlite3_busy_timeout(handle_, 10'000);
    EXPECT_EQ(sqlite3_exec(handle_, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  }
  ~WriteLock() { sqlite3_close(handle_); }

 private:
  sqlite3* handle_ = nullptr;
};

TEST_F(Metrics, WaitForNoWriter) {
  submit();
  const double before = sample("quasi_db_batch_size_count");
  const WriteLock lock(options_.data_directory + "/quasi.db");
  // The writer now waits for the lock; the counts of its groups stay while scrapes go on.
  EXPECT_TRUE(wait_for([&] { return sample("quasi_db_queue_depth") >= 2; }));
  const double stopped = sample("quasi_db_batch_size_count");
  EXPECT_GE(stopped, before);
  EXPECT_EQ(sample("quasi_jobs{state=\"queued\",pool=\"default\"}"), 1);
  EXPECT_EQ(sample("quasi_db_batch_size_count"), stopped);
}

TEST_F(Metrics, NameNoJobAndNobody) {
  const std::string token = token_of("ursula", v1::ROLE_USER, "phonons");
  grpc::ClientContext context;
  limit(context);
  context.AddMetadata("authorization", "Bearer " + token);
  v1::SubmitJobsRequest request;
  request.set_request_id(wire::make_uuid());
  request.add_jobs()->mutable_test()->mutable_noop();
  request.mutable_jobs(0)->set_name("silicon7");
  v1::SubmitJobsResponse response;
  expect_ok(jobs_->SubmitJobs(&context, request, &response));
  const std::string text = get("/metrics").body;
  EXPECT_NE(text.find("quasi_jobs_submitted_total{kind=\"test\"} 1"), std::string::npos);
  for (const std::string& name : {std::string("ursula"), std::string("phonons"),
                                  std::string("silicon7"), response.job_ids(0)})
    EXPECT_EQ(text.find(name), std::string::npos) << name;
}

TEST_F(Metrics, RefuseOtherMethodsPathsAndTokens) {
  EXPECT_EQ(get("/metrics").status, 200);
  EXPECT_EQ(test::http(server_->metrics_address(), "/metrics", "", "POST").status, 405);
  EXPECT_EQ(get("/../etc/passwd").status, 404);
  EXPECT_EQ(get("/healthz").body, "alive\n");
  EXPECT_EQ(get("/readyz").body, "ready\n");
  const std::string worker = token_of("willi", v1::ROLE_WORKER, "phonons");
  EXPECT_EQ(get("/metrics", bearer(worker)).status, 403);
  EXPECT_EQ(get("/metrics", bearer(token_of("vera", v1::ROLE_VIEWER, "a"))).status, 200);
  int refused = 0, waits = 0;
  for (int i = 0; i < 8; ++i) {
    const int status = get("/metrics", bearer("qsi_wrong_token")).status;
    refused += status == 401;
    waits += status == 429;
  }
  EXPECT_EQ(refused, 5) << "failed_logins_per_minute";
  EXPECT_EQ(waits, 3);
  EXPECT_EQ(get("/metrics", bearer(token_of("vera", v1::ROLE_VIEWER, "a"))).status, 200)
      << "a valid token is always admitted";
}

TEST_F(Metrics, ReadinessEndsWithTheWriter) {
  // A server is ready once its writer has reported for the first time.
  EXPECT_TRUE(wait_for([&] { return get("/readyz").status == 200; }));
  server_.reset();
  options_.api.storage_low_bytes = std::int64_t{1} << 60;
  start();
  EXPECT_TRUE(wait_for([&] { return get("/readyz").status == 503; }));
  EXPECT_EQ(get("/healthz").status, 200);
}

TEST_F(Metrics, BeyondThisMachineAskForTlsAndAToken) {
  const std::string token = token_of("vera", v1::ROLE_VIEWER, "phonons");
  const std::int64_t now = std::time(nullptr);
  const ValidTime valid{.from_s = now - 3'600, .until_s = now + 3'600};
  const KeyedCertificate authority = make_authority("a CA", valid);
  const KeyedCertificate own = make_server_certificate(authority, {"127.0.0.1"}, valid);
  options_.tls = {.certificate = root_ + "/own.pem", .key = root_ + "/own.key", .ca = {}};
  std::ofstream(options_.tls.certificate) << own.certificate_pem;
  std::ofstream(options_.tls.key) << own.key_pem;
  ::chmod(options_.tls.key.c_str(), 0600);
  server_.reset();
  options_.metrics_listen = "0.0.0.0:0";
  start();
  std::string address = server_->metrics_address();
  address.replace(0, address.rfind(':'), "127.0.0.1");
  EXPECT_NE(test::http(address, "/metrics").status, 200) << "plain text";
  EXPECT_EQ(test::http(address, "/metrics", "", "GET", true).status, 401);
  EXPECT_EQ(test::http(address, "/metrics", bearer(token), "GET", true).status, 200);
  EXPECT_EQ(test::http(address, "/readyz", "", "GET", true).status, 200);
}

/// Runs promtool, which is in Debian's package prometheus. @return its exit status
int promtool(const std::string& arguments) {
  return std::system(("promtool " + arguments + " >/dev/null 2>&1").c_str());
}

TEST_F(Metrics, PromtoolAcceptsTextRulesAndTheirTests) {
  if (promtool("--version") != 0) GTEST_SKIP() << "promtool is not here: Debian's prometheus";
  submit();
  register_worker();
  const std::string path = root_ + "/metrics.txt";
  std::ofstream(path) << get("/metrics").body;
  EXPECT_EQ(promtool("check metrics < " + path), 0);
  const std::string folder = (test::source_dir() / "deploy/monitoring").string();
  EXPECT_EQ(promtool("check rules " + folder + "/alerts.yaml"), 0);
  EXPECT_EQ(promtool("test rules " + folder + "/alerts_test.yaml"), 0);
  EXPECT_EQ(promtool("check config --syntax-only " + folder + "/prometheus.yaml"), 0);
}

/// The names of families in a text, i.e. words that begin with "quasi_".
std::set<std::string> names_in(const std::string& text) {
  std::set<std::string> names;
  for (std::size_t at = text.find("quasi_"); at != std::string::npos;
       at = text.find("quasi_", at + 1)) {
    std::size_t end = at;
    while (end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_'))
      ++end;
    std::string name = text.substr(at, end - at);
    for (const std::string suffix : {"_bucket", "_sum", "_count"})
      if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
    names.insert(name);
  }
  return names;
}

std::string source_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(test::source_dir() / path).rdbuf();
  return text.str();
}

// An alarm or a diagram on a name that the server does not have would be silent for ever.
TEST_F(Metrics, AlertsDashboardAndPageNameWhatTheServerHas) {
  std::set<std::string> families;
  std::istringstream text(get("/metrics").body);
  for (std::string line; std::getline(text, line);)
    if (line.starts_with("# TYPE ")) families.insert(line.substr(7, line.find(' ', 7) - 7));
  EXPECT_GE(families.size(), 30U);
  for (const char* path : {"deploy/monitoring/alerts.yaml", "deploy/monitoring/dashboard.json"}) {
    const auto names = names_in(source_of(path));
    EXPECT_GE(names.size(), 5U) << path;
    for (const std::string& name : names) EXPECT_TRUE(families.contains(name)) << path << name;
  }
  const std::string page = source_of("docs/reference/operations.md");
  for (const std::string& name : families)
    EXPECT_NE(page.find("`" + name), std::string::npos) << name << " has no row in operations.md";
}

}  // namespace
}  // namespace quasi::server
