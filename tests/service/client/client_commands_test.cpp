// Tests commands as they are typed, in each of their formats: the turns of waiting jobs, sets of
// jobs, what a flag refuses, and figures that the Python module draws.

#include <algorithm>

#include "tests/service/support/client_fixture.hpp"
#include "tests/support/reference_data.hpp"

namespace quasi::client {
namespace {

const std::string kDeck = (test::source_dir() / "examples/thermal/silicon-sw").string();

void expect_says(const std::string& text, const std::string& words) {
  EXPECT_NE(text.find(words), std::string::npos) << text;
}

/// A server without a worker, so that every job waits.
class Waiting : public EndToEnd {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(start_server()); }

  std::string submit_noop(const std::string& name = "noop") {
    return submit(job(name, "[test.noop]"));
  }
  json document(std::vector<std::string> words) {
    words.emplace_back("--json");
    const Ran ran = quasi(words);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return json::parse(ran.out);
  }
  std::string text(const std::vector<std::string>& words) {
    const Ran ran = quasi(words);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return ran.out;
  }
  /// Runs a command that is refused. @return its error
  std::string refused(const std::vector<std::string>& words, int status) {
    const Ran ran = quasi(words);
    EXPECT_EQ(ran.status, status) << ran.out << ran.err;
    if (status == 2) {
      EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 2)
          << "one line says what, one says what to do: " << ran.err;
    }
    return ran.err;
  }
  /// Submits a sweep without a check of its deck. @return the id of its set
  std::string submit_sweep(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"submit",  "thermal",    kDeck,   "--name",
                                      "grid",    "--no-check", "--set", "ngrid=3 3 3",
                                      "--sweep", "T=300:500:3"};
    words.insert(words.end(), more.begin(), more.end());
    return document(words)["set"];
  }
};

TEST_F(Waiting, JobsAreHeldReleasedAndRanked) {
  const std::string id = submit_noop();
  EXPECT_EQ(text({"hold", id, "--reason", "a talk"}), id + "  held  priority 0\n");
  EXPECT_EQ(document({"hold", id})["jobs"][0],
            json({{"id", id}, {"state", "held"}, {"priority", 0}}));
  EXPECT_EQ(json::parse(text({"release", id, "--jsonl"}))["state"], "queued");
  EXPECT_EQ(text({"reprioritise", id, "-5", "-o", "name"}), id + "\n");
  EXPECT_EQ(document({"show", id})["jobs"][0]["priority"], -5);
  expect_says(text({"show", id}), "priority");
  EXPECT_EQ(quasi({"reprioritise", id, "101"}).status, 2);
  EXPECT_EQ(quasi({"hold", "j_00000000000000000000000000"}).status, 5);
  EXPECT_EQ(text({"cancel", id}), id + "  cancelled\n");
  EXPECT_EQ(quasi({"hold", id}).status, 10) << "a job that has ended";
}

TEST_F(Waiting, WhyAJobWaitsHasEachFormat) {
  const std::string first = submit_noop("first");
  const std::string second = submit(job("second", "[test.noop]"), {"--after", first});
  expect_says(text({"why", second}), "waits for  " + first);
  const json answer = document({"why", first, second})["jobs"];
  ASSERT_EQ(answer.size(), 2U);
  EXPECT_EQ(answer[0]["position"], 1);
  EXPECT_EQ(answer[1]["blocking"], json({first}));
  EXPECT_EQ(json::parse(text({"why", first, "--jsonl"}))["id"], first);
  EXPECT_EQ(text({"why", first, "-o", "name"}), first + "\n");
  expect_says(text({"show", second}), "after");
}

TEST_F(Waiting, ASetIsListedShownAndCancelled) {
  expect_says(quasi({"list", "--sets"}).err, "no sets of jobs; quasi submit --sweep makes one");
  const std::string set = submit_sweep({"--max-concurrent", "2", "--stop-after-failures", "1"});
  const std::string single = submit_noop();
  EXPECT_EQ(text({"list", "--sets", "-o", "name"}), set + "\n");
  expect_says(text({"list", "--sets"}), "grid");
  EXPECT_EQ(document({"list", "--sets"})["sets"][0]["id"], set);
  EXPECT_EQ(json::parse(text({"list", "--sets", "--jsonl"}))["id"], set);
  EXPECT_EQ(document({"list", "--set", set})["jobs"].size(), 3U) << "without the job of no set";
  expect_says(refused({"list", "--set", "s_00000000000000000000000000"}, 5), "no set of jobs");

  const std::string page = text({"show", set});
  for (const char* words : {"3: ", "T = ", "2 jobs", "1 failures"}) expect_says(page, words);
  EXPECT_EQ(text({"show", set, "-o", "name"}), set + "\n");

  expect_says(refused({"cancel", set}, 2), "this would cancel 3 jobs");
  const json cancelled = document({"cancel", set, "--yes"})["jobs"];
  ASSERT_EQ(cancelled.size(), 3U);
  for (const json& one : cancelled) EXPECT_EQ(one["state"], "cancelled");
  EXPECT_EQ(document({"show", single})["jobs"][0]["state"], "queued");
  EXPECT_EQ(document({"show", set})["set"]["counts"], json({{"cancelled", 3}}));
  const std::string table = text({"table", set});
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 4) << table;
  expect_says(table, "T");
}

TEST_F(Waiting, CancelsAndDeletionsHaveEachFormat) {
  const std::string first = submit_noop(), second = submit_noop(), third = submit_noop();
  EXPECT_EQ(json::parse(text({"cancel", first, "--jsonl"})),
            json({{"id", first}, {"state", "cancelled"}}));
  EXPECT_EQ(text({"cancel", second, "-o", "name"}), second + "\n");
  expect_says(refused({"delete", third}, 10), third);
  EXPECT_EQ(document({"delete", first})["jobs"][0], json({{"id", first}, {"deleted", true}}));
  EXPECT_EQ(json::parse(text({"delete", second, "--jsonl"}))["deleted"], true);
  EXPECT_EQ(text({"delete", third, "--force", "-o", "name"}), third + "\n") << "cancelled first";
  EXPECT_EQ(quasi({"show", third}).status, 5);
}

TEST_F(Waiting, AListRefusesWhatItDoesNotKnow) {
  const std::string id = submit(job("one", "[labels]\nproject = \"thesis\"\n[test.noop]"));
  EXPECT_EQ(text({"list", "--state", "active", "-o", "name"}), id + "\n");
  EXPECT_EQ(text({"list", "--state", "ended", "-o", "name"}), "");
  EXPECT_EQ(text({"list", "--label", "project=thesis", "--since", "1h", "-o", "name"}), id + "\n");
  EXPECT_EQ(text({"list", "--until", "1h", "-o", "name"}), "");
  expect_says(text({"list", "-o", "wide"}), "project=thesis");
  EXPECT_EQ(json::parse(text({"list", "--jsonl"}))["id"], id);
  expect_says(refused({"list", "--state", "quued"}, 2), "did you mean 'queued'?");
  expect_says(refused({"list", "--kind", "termal"}, 2), "did you mean 'thermal'?");
  expect_says(refused({"list", "--label", "thesis"}, 2), "is not of the form key=value");
  expect_says(refused({"list", "--since", "yesterday"}, 2), "is not a time span");
  expect_says(refused({"list", "--limit", "0"}, 2), "must be at least 1, got 0");
}

TEST_F(Waiting, ALogThatHasNotBegunIsSaidToBeSo) {
  const std::string id = submit_noop();
  expect_says(quasi({"logs", id}).err, "no attempt of " + id + " has begun; it is queued");
  EXPECT_EQ(quasi({"logs", id, "--attempt", "3"}).status, 5);
  auto following = begin({"logs", id, "-f"});
  ASSERT_NO_FATAL_FAILURE(start_worker());
  EXPECT_EQ(following->wait_at_most(), 0) << following->err();
  expect_says(quasi({"logs", id}).err, "the log of " + id + " is empty");
}

TEST_F(Waiting, ADryRunSendsNothing) {
  const std::string file = job("noop", "[test.noop]");
  expect_says(text({"submit", file, "--dry-run"}), "would submit  noop  test  0 inputs, 0 B");
  const json dry = document({"submit", file, "--dry-run"});
  EXPECT_EQ(dry["dry_run"], true);
  EXPECT_EQ(dry["jobs"][0]["name"], "noop");
  const std::string wrong = job("wrong", "priority = 101\n[test.noop]");
  expect_says(refused({"submit", wrong, "--dry-run"}, 9), "priority");
  EXPECT_EQ(text({"list", "-o", "name"}), "");
}

TEST_F(Waiting, PendingSubmissionsAreSentAgainOrDropped) {
  expect_says(quasi({"submit", "--resume"}).err, "no submission is pending");
  EXPECT_EQ(document({"submit", "--resume"})["submitted"], json::array());
  expect_says(refused({"submit", "--forget", "x"}, 2), "is no request id");
  const std::string request = "01234567-89ab-4def-8123-456789abcdef";
  expect_says(refused({"submit", "--forget", request}, 5), "no pending submission");
  constexpr std::int64_t kEightDaysMs = 8 * 24 * 3'600'000LL;
  const std::int64_t long_ago_ms =
      std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count() -
      kEightDaysMs;
  // A submission of another store is not sent to this one, and a damaged one to none.
  json entry = {{"schema", "quasi.pending.v1"}, {"request_id", request},
                {"created_ms", long_ago_ms},    {"address", "lab"},
                {"store_id", "another"},        {"request", json::object()}};
  entry["request"] = {{"request_id", request},
                      {"jobs", {{{"name", "late"}, {"test", {{"noop", json::object()}}}}}}};
  file("state/pending/" + request + ".json", entry.dump());
  expect_says(refused({"submit", "--resume"}, 10), "is for another server, lab");
  entry["store_id"] = "";
  file("state/pending/" + request + ".json", entry.dump());
  // The server has forgotten its answers of that time, and no job of that name is from then.
  expect_says(quasi({"submit", "--resume"}).err, "sent again: " + request);
  EXPECT_EQ(document({"list"})["jobs"][0]["name"], "late");
  entry["request"]["jobs"] = "none";
  file("state/pending/" + request + ".json", entry.dump());
  expect_says(refused({"submit", "--resume"}, 12), request + " is damaged");
  expect_says(quasi({"submit", "--forget", request}).err, "dropped " + request);
  expect_says(quasi({"submit", "--resume"}).err, "no submission is pending");
}

TEST_F(Waiting, OrdersOfTheOperatorHaveEachFormat) {
  expect_says(quasi({"devices"}).err, "no worker is connected");
  EXPECT_EQ(document({"devices"})["pools"].size(), 1U);
  ASSERT_NO_FATAL_FAILURE(start_worker());
  await_state(submit_noop(), "succeeded");
  const json worker = document({"devices"})["pools"][0]["workers"][0];
  const std::string name = worker["name"], device = worker["devices"][0]["id"];
  EXPECT_EQ(text({"devices", "-o", "name"}), name + "/" + device + "\n");
  expect_says(text({"devices", "-o", "wide"}), name);
  expect_says(text({"admin", "cordon", name, device, "--reason", "a fan"}),
              device + " of " + name + " is out of service; running jobs that end there: 0");
  expect_says(text({"devices"}), "a fan");
  EXPECT_EQ(document({"admin", "uncordon", name, device})["in_service"], true);
  EXPECT_EQ(document({"admin", "drain", name, "--reason", "a move"})["jobs_leaving"], 0);
  expect_says(text({"admin", "undrain", name}), name + " is back in service");
  expect_says(refused({"admin", "cordon", name}, 2), "cordon got 1 names");
}

/// An interpreter that writes its arguments into a file. It stands for Python, so that the module
/// and its packages need not be there.
class Drawn : public EndToEnd {
 protected:
  std::string interpreter() const {
    const fs::path script = file("python",
                                 "#!/bin/sh\n[ \"$1\" = -c ] && exit $CHECK\n"
                                 "printf '%s\\n' \"$@\" > \"$SAID\"\nexit $STATUS\n");
    fs::permissions(script, fs::perms::owner_all);
    return script.string();
  }
  /// Runs a command with this interpreter, which ends with `status`.
  Ran draw(std::vector<std::string> words, int status = 0, int check = 0) {
    words.insert(words.begin(), {"quasi", "--server", socket()});
    if (!fs::exists(path("client.toml"))) file("client.toml", "");
    const auto process =
        spawn("quasi" + std::to_string(++commands_), std::move(words),
              {"QUASI_PYTHON=" + interpreter(), "SAID=" + path("said").string(),
               "STATUS=" + std::to_string(status), "CHECK=" + std::to_string(check)});
    const int ended = process->wait_at_most();
    return {ended, process->out(), process->err()};
  }
  std::string said() const { return slurp(path("said")); }
};

TEST_F(Drawn, TheResultsOfASetAreDrawnWithTheirAxes) {
  const Ran sent = quasi({"submit", "thermal", kDeck, "--set", "ngrid=3 3 3", "--sweep",
                          "T=300,400", "--wait", "--json"});
  ASSERT_EQ(sent.status, 0) << sent.err;
  const json jobs = json::parse(sent.out)["jobs"];
  const std::string first = jobs[0]["id"], second = jobs[1]["id"];
  const std::string results = (path("state") / "results").string() + "/";
  const std::string set = json::parse(quasi({"list", "--sets", "--json"}).out)["sets"][0]["id"];
  ASSERT_EQ(draw({"plot", set, "kappa", "-o", "k.pdf"}).status, 0);
  EXPECT_EQ(said(), "-m\nquasi\nplot\n" + results + first + "\n" + results + second +
                        "\nkappa\n--output\nk.pdf\n--label\nT = 300\n--label\nT = 400\n");
  EXPECT_TRUE(fs::exists(results + first + "/result.h5")) << "it was fetched";
  ASSERT_EQ(draw({"report", first}).status, 0);
  EXPECT_EQ(said(), "-m\nquasi\nreport\n" + results + first + "\n");
  const Ran fetched = quasi({"fetch", set, "-d", path("out").string()});
  EXPECT_EQ(fetched.status, 0) << fetched.err;
  const auto count = std::distance(fs::directory_iterator(path("out")), fs::directory_iterator());
  EXPECT_EQ(count, 2) << "a folder for each job of the set";

  const json compared = json::parse(quasi({"cache", "explain", first, second, "--json"}).out);
  EXPECT_EQ(compared["equal"], false);
  ASSERT_EQ(compared["differences"].size(), 1U) << compared;
  EXPECT_EQ(compared["jobs"][1]["id"], second);
  EXPECT_EQ(quasi({"cache", "compare", first, second}).status, 2);
}

TEST_F(Drawn, TheStatusOfTheModuleIsTheOneOfTheCommand) {
  fs::create_directories(path("result"));
  const std::string result = path("result").string();
  EXPECT_EQ(draw({"plot", result, "--list"}).status, 0);
  EXPECT_EQ(said(), "-m\nquasi\nplot\n" + result + "\n--list\n");
  EXPECT_EQ(draw({"plot", result, "--label", "mine"}, 2).status, 2);
  EXPECT_EQ(draw({"plot", result}, 5).status, 12);
  EXPECT_EQ(draw({"plot", result}, 1).status, 9);
  const Ran missing = draw({"plot", result}, 0, 1);
  EXPECT_EQ(missing.status, 13);
  expect_says(missing.err, "apt install python3-quasi");
  EXPECT_EQ(draw({"plot", "j_00000000000000000000000000"}).status, 5);
  worker_->end(SIGKILL);
  const Ran sent = quasi({"submit", "thermal", kDeck, "--no-check", "--sweep", "T=300,400"});
  ASSERT_EQ(sent.status, 0) << sent.err;
  const Ran waiting = draw({"plot", sent.out.substr(sent.out.find("s_"), 28)});
  EXPECT_EQ(waiting.status, 10);
  expect_says(waiting.err, "2 jobs of the set have no results");
}

}  // namespace
}  // namespace quasi::client
