// Tests the status page: what it shows to whom, that everything from outside is text on it, and
// that it is whole HTML without scripts. One test opens it in Chromium, where that is installed.

#include <sqlite3.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <regex>
#include <set>
#include <vector>

#include "server/web/fleet_board.hpp"
#include "server/web/pages/page_frame.hpp"
#include "tests/service/server/web/web_fixture.hpp"

namespace quasi::server {
namespace {

constexpr char kScript[] = "<script>alert(\"κ\")</script>";

/// Elements that are open at the end of a document, or the first that is closed out of order.
std::string nesting_fault(const std::string& html) {
  static const std::regex tag("<(/?)([a-zA-Z][a-zA-Z0-9]*)([^>]*)>");
  static const std::set<std::string> empty{"meta", "link", "br", "line", "polyline"};
  std::vector<std::string> open;
  for (std::sregex_iterator at(html.begin(), html.end(), tag), end; at != end; ++at) {
    const std::string name = (*at)[2];
    if (empty.contains(name)) continue;
    if ((*at)[1].length() == 0) {
      open.push_back(name);
    } else if (open.empty() || open.back() != name) {
      return "</" + name + "> closes " + (open.empty() ? "nothing" : open.back());
    } else {
      open.pop_back();
    }
  }
  return open.empty() ? "" : open.back() + " stays open";
}

class StatusPage : public Web {
 protected:
  /// Submits a no-op job of this name. @return its id
  std::string submit_as(const std::string& token, const std::string& name,
                        v1::Visibility visibility = v1::VISIBILITY_PRIVATE) {
    grpc::ClientContext context;
    limit(context);
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    v1::SubmitJobsRequest request;
    request.set_request_id(wire::make_uuid());
    request.add_jobs()->mutable_test()->mutable_noop();
    request.mutable_jobs(0)->set_name(name);
    request.mutable_jobs(0)->set_visibility(visibility);
    (*request.mutable_jobs(0)->mutable_labels())["project"] = "<b>kappa</b>";
    v1::SubmitJobsResponse response;
    expect_ok(jobs_->SubmitJobs(&context, request, &response));
    return response.job_ids(0);
  }
  /// A page for the holder of a token. The page must be whole HTML.
  std::string page(const std::string& path, const std::string& token) {
    const test::HttpAnswer answer = get(path, token.empty() ? "" : bearer(token));
    EXPECT_NE(answer.head.find("Content-Type: text/html; charset=utf-8"), std::string::npos)
        << answer.head;
    EXPECT_EQ(nesting_fault(answer.body), "") << path;
    return answer.body;
  }
  static bool has(const std::string& page, const std::string& text) {
    return page.find(text) != std::string::npos;
  }
  /// Runs a job of the worker up to its progress and its log.
  v1::AttemptRef run_with_progress() {
    register_worker();
    const v1::AttemptRef attempt = start_job();
    v1::HeartbeatRequest beat;
    beat.set_worker_id(worker_);
    beat.set_incarnation(incarnation_);
    auto& status = *beat.add_attempts();
    status.set_attempt_id(attempt.attempt_id());
    status.set_fence(attempt.fence());
    status.mutable_progress()->set_phase("scattering <3ph>");
    status.mutable_progress()->set_done(30);
    status.mutable_progress()->set_total(40);
    (*status.mutable_progress()->mutable_metrics())["residual"] = 3.25e-4;
    v1::HeartbeatResponse heard;
    expect_ok(call(&v1::WorkerService::Stub::Heartbeat, beat, &heard));
    v1::AppendLogRequest log;
    *log.mutable_attempt() = attempt;
    log.set_data("step 1 of 4\n" + std::string(kScript) + "\n\x1b[31mred\xff\n");
    v1::AppendLogResponse appended;
    expect_ok(call(&v1::WorkerService::Stub::AppendLog, log, &appended));
    return attempt;
  }
};

TEST(Html, EscapesWhatComesFromOutside) {
  Html html;
  html.markup("<p title=\"").text("\"a\" & 'b'").markup("\">").text("<i>κ</i>").markup("</p>");
  EXPECT_EQ(html.str(), "<p title=\"&quot;a&quot; &amp; &#39;b&#39;\">&lt;i&gt;κ&lt;/i&gt;</p>");
  const std::string kGone = "\xEF\xBF\xBD";
  EXPECT_EQ(visible("a\tb\nc κ 😀"), "a\tb\nc κ 😀");
  EXPECT_EQ(visible("\x1b[31m"), kGone + "[31m");
  EXPECT_EQ(visible("\xff\xc0\xaf"), kGone + kGone + kGone);
  EXPECT_EQ(visible("\xed\xa0\x80"), kGone + kGone + kGone) << "half of a pair";
  EXPECT_EQ(visible("gpj.\u202Etxt"), "gpj." + kGone + "txt") << "a change of direction";
  EXPECT_EQ(visible("\xe2\x82"), kGone + kGone) << "a character that was cut";
}

TEST(Html, ShowsValuesForPeople) {
  EXPECT_EQ(shown_duration(400), "0.4 s");
  EXPECT_EQ(shown_duration(59'900), "59 s");
  EXPECT_EQ(shown_duration(725'000), "12 min 5 s");
  EXPECT_EQ(shown_duration(7'260'000), "2 h 1 min");
  EXPECT_EQ(shown_duration(273'600'000), "3 d 4 h");
  EXPECT_EQ(shown_bytes_of(812), "812 B");
  EXPECT_EQ(shown_bytes_of(1'340'000'000), "1.3 GB");
  EXPECT_EQ(shown_time(0), "–");
  EXPECT_EQ(shown_time(1'795'729'914'000), "2026-11-26 21:51:54 UTC");
}

TEST(Html, SparkLinesEndAtTheRightEdge) {
  Series series;
  Html none;
  add_spark_line(none, series, 1, "use");
  EXPECT_EQ(none.str(), "<span class=\"soft none\">no history yet</span>");
  for (const float value : {0.0F, 1.0F, 0.5F}) series.add(value);
  Html html;
  add_spark_line(html, series, 1, "use <1>");
  EXPECT_NE(html.str().find("points=\"118,23 119,1 120,12 \""), std::string::npos) << html.str();
  EXPECT_NE(html.str().find("aria-label=\"use &lt;1&gt;\""), std::string::npos);
  for (int i = 0; i < 1'000; ++i) series.add(1);
  EXPECT_EQ(series.values().size(), Series::kMost) << "the memory is bounded";
}

// A value for each 15 s is the mean of the readings since the value before.
TEST(FleetHistory, KeepsMeansOfHalfAnHour) {
  FleetBoard board;
  WorkerStatus worker;
  worker.online = true;
  worker.worker.id = "w_1";
  worker.devices.resize(1);
  worker.devices[0].device = {.id = "gpu", .memory_bytes = 100};
  const auto put = [&](std::int64_t second, double utilization) {
    worker.devices[0].utilization = utilization;
    worker.devices[0].free_bytes = 25;
    board.put({worker}, {.wall_ms = 0, .monotonic_ms = 1 + 1'000 * second});
  };
  put(0, 0.5);
  for (std::int64_t second = 1; second <= 15; ++second) put(second, second <= 5 ? 0.9 : 0.3);
  const DeviceHistory history = board.history().at("w_1/gpu");
  ASSERT_EQ(history.utilization.values().size(), 2u);
  EXPECT_FLOAT_EQ(history.utilization.values()[0], 0.5F);
  EXPECT_FLOAT_EQ(history.utilization.values()[1], 0.5F) << "(5·0.9 + 10·0.3) / 15";
  EXPECT_FLOAT_EQ(history.memory.values()[1], 0.75F);
  worker.online = false;
  for (std::int64_t second = 16; second < 2'000; second += 15) put(second, 0);
  EXPECT_TRUE(board.history().empty()) << "a device that went is forgotten after half an hour";
}

TEST_F(StatusPage, ShowsAVisitorWhatTheApiShows) {
  const std::string ada = token_of("ada", v1::ROLE_USER, "phonons"),
                    bob = token_of("bob", v1::ROLE_USER, "phonons"),
                    eve = token_of("eve", v1::ROLE_USER, "devices"),
                    root = token_of("root", v1::ROLE_OPERATOR, "staff");
  const std::string own = submit_as(ada, "adas own"),
                    shared = submit_as(ada, "adas shared", v1::VISIBILITY_TENANT);
  const auto sees = [&](const std::string& token, const std::string& name) {
    return has(page("/", token), name);
  };
  EXPECT_TRUE(sees(ada, "adas own") && sees(ada, "adas shared"));
  EXPECT_TRUE(!sees(bob, "adas own") && sees(bob, "adas shared"));
  EXPECT_TRUE(!sees(eve, "adas own") && !sees(eve, "adas shared"));
  EXPECT_TRUE(sees(root, "adas own") && sees(root, "adas shared"));
  // Sums of all are shown to everybody, and beside them those of the visitor.
  const std::string row =
      "<tr><th scope=\"row\">default</th><td class=\"number\">2</td>"
      "<td class=\"number\">0</td><td class=\"number\">";
  EXPECT_TRUE(sees(ada, row + "2</td>"));
  EXPECT_TRUE(sees(bob, row + "1</td>"));
  EXPECT_TRUE(sees(eve, row + "0</td>"));
  EXPECT_EQ(get("/jobs/" + own, bearer(ada)).status, 200);
  EXPECT_EQ(get("/jobs/" + shared, bearer(bob)).status, 200);
  EXPECT_EQ(get("/jobs/" + own, bearer(bob)).status, 404);
  EXPECT_EQ(get("/jobs/" + shared, bearer(eve)).status, 404);
  EXPECT_EQ(get("/jobs/" + own, bearer(root)).status, 200);
  // A foreign job and an absent one have the same page but for its time.
  const auto without_time = [](const std::string& text) {
    return std::regex_replace(text, std::regex("\\d\\d:\\d\\d:\\d\\d UTC"), "");
  };
  std::string absent = own;
  absent.back() = absent.back() == '0' ? '1' : '0';
  EXPECT_EQ(without_time(page("/jobs/" + own, eve)), without_time(page("/jobs/" + absent, eve)));
}

TEST_F(StatusPage, WithoutATokenShowsSumsAlone) {
  const std::string ada = token_of("ada", v1::ROLE_USER, "phonons");
  const std::string id = submit_as(ada, "silicon7");
  register_worker();
  start_job();
  EXPECT_TRUE(wait_for([&] { return has(page("/", ""), "cpu&lt;b&gt;"); })) << "devices are shown";
  const std::string text = page("/", "");
  for (const std::string& secret :
       {std::string("ada"), std::string("phonons"), std::string("silicon7"), id})
    EXPECT_FALSE(has(text, secret)) << secret;
  EXPECT_TRUE(has(text, "Sign in with a token"));
  EXPECT_EQ(get("/jobs/" + id).status, 401);
  const test::HttpAnswer door = get("/sign-in");
  EXPECT_EQ(door.status, 401);
  EXPECT_NE(door.head.find("WWW-Authenticate: Basic realm="), std::string::npos) << door.head;
  const test::HttpAnswer inside = get("/sign-in", bearer(ada));
  EXPECT_EQ(inside.status, 200);
  EXPECT_TRUE(has(inside.body, "silicon7"));
  EXPECT_EQ(get("/", bearer(token_of("willi", v1::ROLE_WORKER, "a"))).status, 403);
  EXPECT_EQ(get("/", bearer("qsi_wrong_token")).status, 401);
}

TEST_F(StatusPage, EverythingFromOutsideIsText) {
  const std::string root = token_of("root", v1::ROLE_OPERATOR, "staff");
  const std::string running = submit_as("", kScript);
  const v1::AttemptRef attempt = run_with_progress();
  const std::string live = page("/jobs/" + running, root);
  EXPECT_TRUE(has(live, "&lt;script&gt;alert(&quot;κ&quot;)&lt;/script&gt;"));
  EXPECT_TRUE(has(live, "&lt;b&gt;kappa&lt;/b&gt;")) << "a label";
  EXPECT_TRUE(has(live, "\xEF\xBF\xBD[31mred\xEF\xBF\xBD")) << "the log has no escapes";
  EXPECT_TRUE(wait_for([&] { return has(page("/", root), "cpu&lt;b&gt;"); }));
  expect_ok(end_job(attempt, v1::ATTEMPT_OUTCOME_FAILED));
  const std::string overview = page("/", root);
  EXPECT_TRUE(has(overview, "κ &lt; 0 &amp; &lt;script&gt;")) << "a failure";
  for (const std::string& text : {live, overview, page("/jobs/" + running, root)}) {
    EXPECT_FALSE(has(text, "<script"));
    EXPECT_FALSE(has(text, "<b>"));
    EXPECT_FALSE(has(text, " style="));
    EXPECT_FALSE(std::regex_search(text, std::regex("<[^>]* on[a-z]+=")));
    EXPECT_FALSE(has(text, "http:") || has(text, "https:")) << "something of another address";
  }
  for (const std::string& path :
       {std::string("/jobs/"), std::string("/jobs/j_"), std::string("/jobs/%3Cscript%3E"),
        "/jobs/" + running + "/x", std::string("/jobs/j_") + std::string(500, 'A')})
    EXPECT_EQ(get(path, bearer(root)).status, 404) << path;
}

TEST_F(StatusPage, AJobShowsItsFiguresHistoryAndLog) {
  const std::string root = token_of("root", v1::ROLE_OPERATOR, "staff");
  const std::string id = submit_as("", "silicon");
  EXPECT_TRUE(has(page("/jobs/" + id, root), "No worker has taken it yet"));
  const v1::AttemptRef attempt = run_with_progress();
  std::string text = page("/jobs/" + id, root);
  for (const char* part :
       {"<h1>silicon</h1>", "scattering &lt;3ph&gt;: 30 of 40", "value=\"75\"",
        "<dt>residual</dt><dd>0.000325</dd>", "step 1 of 4", "node7",
        "<span class=\"state good\">running</span>", "<td>open", "Label project"})
    EXPECT_TRUE(has(text, part)) << part;
  expect_ok(end_job(attempt, v1::ATTEMPT_OUTCOME_FAILED));
  text = page("/jobs/" + id, root);
  EXPECT_TRUE(has(text, "numerical: κ &lt; 0"));
  EXPECT_TRUE(has(text, "<td>failed"));
  // The newest change of the state comes first.
  EXPECT_LT(text.find("failed</span></td><td class=\"number\">1"),
            text.find("leased</span></td><td class=\"number\">1"));
}

TEST_F(StatusPage, SetsAStrictPolicy) {
  const test::HttpAnswer answer = get("/");
  for (const char* line :
       {"Content-Security-Policy: default-src 'none'; style-src 'self'; frame-ancestors 'none'; "
        "base-uri 'none'; form-action 'none'\r\n",
        "X-Content-Type-Options: nosniff\r\n", "Referrer-Policy: no-referrer\r\n",
        "Cache-Control: no-store\r\n", "Cross-Origin-Resource-Policy: same-origin\r\n"})
    EXPECT_NE(answer.head.find(line), std::string::npos) << line << answer.head;
  EXPECT_FALSE(has(answer.body, "http-equiv=\"refresh\""));
  EXPECT_TRUE(has(get("/?refresh=1").body, "http-equiv=\"refresh\" content=\"10\""));
  EXPECT_NE(get("/style.css").head.find("Content-Type: text/css"), std::string::npos);
}

TEST_F(StatusPage, PagesAreBoundedInSizeAndRate) {
  const std::string ada = token_of("ada", v1::ROLE_USER, "phonons");
  for (int i = 0; i < 150; ++i) submit_as(i % 2 ? ada : "", std::string(128, '&'));
  EXPECT_LT(page("/", ada).size(), 128U << 10);
  server_.reset();
  options_.api.calls_per_second = 1;
  start();
  int shown = 0, refused = 0;
  for (int i = 0; i < 30; ++i) {
    const test::HttpAnswer answer = get("/", bearer(ada));
    shown += answer.status == 200;
    refused += answer.status == 429;
    if (answer.status == 429) {
      EXPECT_NE(answer.head.find("Retry-After: "), std::string::npos) << answer.head;
    }
  }
  EXPECT_EQ(shown + refused, 30);
  EXPECT_GE(refused, 10) << "ten at once, then one a second";
}

TEST_F(StatusPage, WaitsForNoWriter) {
  const std::string ada = token_of("ada", v1::ROLE_USER, "phonons");
  const std::string id = submit_as(ada, "silicon");
  sqlite3* lock = nullptr;
  ASSERT_EQ(sqlite3_open((options_.data_directory + "/quasi.db").c_str(), &lock), SQLITE_OK);
  sqlite3_busy_timeout(lock, 10'000);
  ASSERT_EQ(sqlite3_exec(lock, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  EXPECT_TRUE(wait_for([&] { return sample("quasi_db_queue_depth") >= 2; }));
  const double stopped = sample("quasi_db_batch_size_count");
  EXPECT_TRUE(has(page("/", ada), "silicon"));
  EXPECT_EQ(get("/jobs/" + id, bearer(ada)).status, 200);
  EXPECT_EQ(sample("quasi_db_batch_size_count"), stopped);
  sqlite3_close(lock);
}

/// Runs Chromium without a window and returns what it prints. "" if it is not installed.
std::string chromium(const std::string& arguments) {
  std::string text;
  const std::string command =
      "c=$(command -v chromium || command -v chromium-browser) && timeout 120 $c --headless "
      "--no-sandbox --disable-gpu --no-first-run --hide-scrollbars --enable-logging=stderr " +
      arguments + " 2>&1";
  FILE* pipe = ::popen(command.c_str(), "r");
  std::array<char, 4'096> part{};
  for (std::size_t size = 0; (size = std::fread(part.data(), 1, part.size(), pipe)) > 0;)
    text.append(part.data(), size);
  return ::pclose(pipe) == 0 ? text : "";
}

// A violation of the policy, a script that ran or a style that was refused is a message of the
// console. QUASI_PICTURES names a folder in which pictures of the pages stay.
TEST_F(StatusPage, ABrowserShowsItWithoutComplaint) {
  const std::string root = token_of("root", v1::ROLE_OPERATOR, "staff");
  const std::string id = submit_as("", kScript);
  submit_as("", "GaAs, 216 atoms");
  run_with_progress();
  EXPECT_TRUE(wait_for([&] { return has(page("/", root), "node7"); }));
  const std::string profile = " --user-data-dir=" + root_ + "/profile ";
  const std::string host = "'http://root:" + root + "@" + server_->metrics_address();
  // A browser sends a token once it is asked for one, as behind the link of the page.
  const std::string overview = chromium(profile + "--dump-dom " + host + "/sign-in'");
  if (overview.empty()) GTEST_SKIP() << "Chromium is not here: Debian's package chromium";
  for (const std::string& text :
       {overview, chromium(profile + "--dump-dom " + host + "/jobs/" + id + "'")}) {
    EXPECT_TRUE(has(text, "&lt;script&gt;alert")) << text;
    EXPECT_FALSE(has(text, "CONSOLE")) << text;
    EXPECT_FALSE(has(text, "<script"));
  }
  const char* folder = std::getenv("QUASI_PICTURES");
  if (folder == nullptr) return;
  int n = 0;
  for (const char* size : {"1280,1400", "390,1800"})
    for (const std::string& where : {std::string("/sign-in"), "/jobs/" + id})
      for (const char* mode : {"", "--blink-settings=preferredColorScheme=0 "})
        chromium(profile + mode + "--window-size=" + size + " --screenshot=" + folder + "/status" +
                 std::to_string(n++) + ".png " + host + where + "'");
}

}  // namespace
}  // namespace quasi::server
