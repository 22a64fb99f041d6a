// Every command as a person types it: the programs themselves, over a real server and worker.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <thread>

#include "tests/support/reference_data.hpp"

extern char** environ;

namespace quasi::client {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::string slurp(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// A child with its streams in files, killed when the object goes.
class Process {
 public:
  Process(const std::vector<std::string>& words, const fs::path& log_base, const std::vector<std::string>& variables)
      : out_(log_base.string() + ".out"), err_(log_base.string() + ".err") {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    std::vector<char*> argv, envp;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    // A worker starts engines in an environment of its own; bits can be compared only if what a
    // person has set for BLAS does not reach the engine of `quasi run` either.
    for (char** at = environ; *at != nullptr; ++at)
      if (std::string(*at).rfind("QUASI_", 0) != 0 && std::string(*at).rfind("OPENBLAS_", 0) != 0)
        envp.push_back(*at);
    for (const std::string& variable : variables) envp.push_back(const_cast<char*>(variable.c_str()));
    envp.push_back(nullptr);
    if (posix_spawn(&pid_, words[0].c_str(), &actions, nullptr, argv.data(), envp.data()) != 0) pid_ = -1;
    posix_spawn_file_actions_destroy(&actions);
  }
  ~Process() {
    if (running()) end(SIGKILL);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  bool started() const { return pid_ > 0; }
  bool running() {
    if (pid_ <= 0 || ended_) return false;
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) take(status);
    return !ended_;
  }
  void send(int signal) { ::kill(pid_, signal); }
  /// Sends a signal and waits for the end.
  int end(int signal) {
    send(signal);
    return wait();
  }
  int wait() {
    int status = 0;
    if (!ended_ && waitpid(pid_, &status, 0) == pid_) take(status);
    return status_;
  }
  /// As wait, but a test that hangs fails instead.
  int wait_at_most(seconds limit) {
    const auto deadline = Clock::now() + limit;
    while (running() && Clock::now() < deadline) std::this_thread::sleep_for(milliseconds(5));
    if (running()) {
      ADD_FAILURE() << "still running after " << limit.count() << " s\n" << out() << err();
      return end(SIGKILL);
    }
    return status_;
  }
  std::string out() const { return slurp(out_); }
  std::string err() const { return slurp(err_); }

 private:
  void take(int status) {
    ended_ = true;
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  fs::path out_, err_;
  pid_t pid_ = -1;
  bool ended_ = false;
  int status_ = -1;
};

struct Ran {
  int status = -1;
  std::string out;
  std::string err;
};

/// A server and a worker of their own for each test, and a person's directory.
class EndToEnd : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(start_server());
    ASSERT_NO_FATAL_FAILURE(start_worker());
  }
  void TearDown() override {
    if (worker_) worker_->end(SIGKILL);
    if (server_) server_->end(SIGKILL);
    if (HasFailure()) {
      if (server_) std::fprintf(stderr, "--- server\n%s", server_->err().c_str());
      if (worker_) std::fprintf(stderr, "--- worker\n%s", worker_->err().c_str());
    }
  }

  fs::path path(const std::string& name) const { return directory_.path() / name; }
  std::string socket() const { return "unix:" + path("s").string(); }
  fs::path file(const std::string& name, const std::string& text) const {
    fs::create_directories(path(name).parent_path());
    std::ofstream(path(name)) << text;
    return path(name);
  }
  /// A job file for one piece of test work.
  std::string job(const std::string& name, const std::string& work) const {
    return file(name + ".toml", "name = \"" + name + "\"\n" + work + "\n").string();
  }

  std::unique_ptr<Process> spawn(const std::string& log, std::vector<std::string> words,
                                 std::vector<std::string> variables = {}) const {
    words[0] = std::string(QUASI_BINARY_DIR) + "/" + words[0];
    variables.push_back("QUASI_STATE=" + path("state").string());
    variables.push_back("QUASI_CONFIG=" + path("client.toml").string());
    return std::make_unique<Process>(words, path(log), variables);
  }
  std::unique_ptr<Process> begin(std::vector<std::string> words) {
    words.insert(words.begin(), {"quasi", "--server", socket()});
    if (!fs::exists(path("client.toml"))) file("client.toml", "");
    return spawn("quasi" + std::to_string(++commands_), std::move(words));
  }
  Ran quasi(std::vector<std::string> words, seconds limit = seconds(100)) {
    const auto process = begin(std::move(words));
    const int status = process->wait_at_most(limit);
    return {status, process->out(), process->err()};
  }
  /// The id of a job that was just submitted.
  std::string submit(const std::string& job_file, std::vector<std::string> more = {}) {
    std::vector<std::string> words{"submit", job_file, "-o", "name"};
    words.insert(words.end(), more.begin(), more.end());
    const Ran ran = quasi(words);
    EXPECT_EQ(ran.status, 0) << ran.err;
    std::string id = ran.out.substr(0, ran.out.find('\n'));
    EXPECT_EQ(id.size(), 28u) << ran.out;
    return id;
  }

  /// A fetch of data.bin into out/ of which some MiB have come; nothing if it always ends first.
  std::unique_ptr<Process> begin_and_catch_midway(const std::string& id) {
    const fs::path part = path("out/data.bin.part");
    for (int attempt = 0; attempt < 10; ++attempt) {
      std::error_code ignored;
      fs::remove(path("out/data.bin"), ignored);
      auto fetching = begin({"fetch", id, "-d", path("out").string(), "--artifact", "data.bin"});
      while (fetching->running())
        if (const auto size = fs::file_size(part, ignored); !ignored && size > (8u << 20)) return fetching;
    }
    return nullptr;
  }

  void start_server() {
    server_ = spawn("server" + std::to_string(++servers_),
                    {"quasi-server", "--data-directory", path("data").string(), "--listen", socket(),
                     "--enable-test-work", "true"});
    ASSERT_TRUE(server_->started());
    const auto deadline = Clock::now() + seconds(30);
    while (Clock::now() < deadline && server_->running())
      if (quasi({"list", "--timeout", "5s"}).status == 0) return;
    FAIL() << "the server does not answer\n" << server_->err();
  }
  void start_worker() {
    worker_ = spawn("worker", {"quasi-worker", "--server", socket(), "--state-directory", path("worker").string(),
                               "--devices", "none", "--slots", "2"});
    ASSERT_TRUE(worker_->started());
  }
  void await_state(const std::string& id, const std::string& state) {
    const auto deadline = Clock::now() + seconds(30);
    std::string seen;
    while (Clock::now() < deadline) {
      seen = json::parse(quasi({"show", id, "--json"}).out)["jobs"][0]["state"];
      if (seen == state) return;
      std::this_thread::sleep_for(milliseconds(50));
    }
    FAIL() << id << " is " << seen << ", not " << state;
  }

  test::TemporaryDirectory directory_;
  std::unique_ptr<Process> server_, worker_;
  int commands_ = 0, servers_ = 0;
};

TEST_F(EndToEnd, ASubmissionFollowedToItsResult) {
  const Ran ran = quasi({"submit", job("emit", "[test.emit]\nbytes = 100000\nseed = 7"), "--watch"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out.rfind("submitted j_", 0), 0u) << ran.out;
  EXPECT_NE(ran.out.find("succeeded"), std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find('\033'), std::string::npos);  // no terminal, no colours

  const Ran fetched = quasi({"fetch", "last", "-d", path("out").string()});
  EXPECT_EQ(fetched.status, 0) << fetched.err;
  EXPECT_NE(fetched.out.find("data.bin  98 KiB  ok\n"), std::string::npos) << fetched.out;
  EXPECT_EQ(fs::file_size(path("out/data.bin")), 100000u);
  EXPECT_FALSE(fs::exists(path("out/data.bin.part")));
  EXPECT_NE(quasi({"fetch", "last", "-d", path("out").string()}).out.find("ok (was here)"), std::string::npos);

  // A file of the same name that is something else is never overwritten unasked.
  file("out/data.bin", "mine");
  const Ran refused = quasi({"fetch", "last", "-d", path("out").string()});
  EXPECT_EQ(refused.status, 10) << refused.err;
  EXPECT_EQ(slurp(path("out/data.bin")), "mine");
  EXPECT_EQ(quasi({"fetch", "last", "-d", path("out").string(), "--force"}).status, 0);
  EXPECT_EQ(fs::file_size(path("out/data.bin")), 100000u);

  const Ran unknown = quasi({"fetch", "last", "--artifact", "data.bim", "-d", path("x").string()});
  EXPECT_EQ(unknown.status, 5);
  EXPECT_NE(unknown.err.find("did you mean 'data.bin'?"), std::string::npos) << unknown.err;
}

TEST_F(EndToEnd, DocumentsOfEveryCommandParseAndCarryTheSchema) {
  const std::string id = submit(job("emit", "[test.emit]\nbytes = 10"), {"--wait"});
  const auto document = [&](std::vector<std::string> words) {
    words.emplace_back("--json");
    const Ran ran = quasi(words);
    EXPECT_EQ(ran.status, 0) << words[0] << ": " << ran.err;
    const json parsed = json::parse(ran.out, nullptr, false);
    EXPECT_EQ(parsed.value("schema", ""), "quasi.cli.v1") << words[0] << ": " << ran.out;
    return parsed;
  };
  EXPECT_EQ(document({"list"})["jobs"][0]["id"], id);
  EXPECT_EQ(document({"show", id})["jobs"][0]["artifacts"][0]["name"], "data.bin");
  EXPECT_EQ(document({"wait", id})["jobs"][0]["state"], "succeeded");
  EXPECT_EQ(document({"watch", id})["jobs"][0]["state"], "succeeded");
  EXPECT_EQ(document({"logs", id})["job"], id);
  EXPECT_EQ(document({"fetch", id, "-d", path("o").string()})["jobs"][0]["files"][0]["name"], "data.bin");
  EXPECT_EQ(document({"cancel", id})["jobs"][0]["state"], "succeeded");
  EXPECT_EQ(document({"devices"})["pools"][0]["workers"][0]["devices"][0]["backend"], "cpu");
  EXPECT_FALSE(document({"version"})["server"].is_null());
  EXPECT_EQ(document({"submit", job("n", "[test.noop]")})["submitted"].size(), 1u);
  EXPECT_EQ(document({"submit", job("n", "[test.noop]"), "--dry-run"})["jobs"].size(), 1u);
  EXPECT_EQ(document({"validate", job("n", "[test.noop]")})["server"]["asked"], true);

  const Ran lines = quasi({"watch", id, "--jsonl"});
  std::istringstream stream(lines.out);
  int count = 0;
  for (std::string line; std::getline(stream, line); ++count)
    EXPECT_FALSE(json::parse(line, nullptr, false).is_discarded()) << line;
  EXPECT_GE(count, 2);

  const Ran error = quasi({"show", "j_01J9QK3V8NXW2R5T7Y9A1C3E5G", "--json"});
  EXPECT_EQ(error.status, 5) << error.err;
  EXPECT_EQ(json::parse(error.out)["error"]["exit_status"], 5);
}

TEST_F(EndToEnd, EndsOfJobsAreTheExitStatus) {
  EXPECT_EQ(quasi({"submit", job("ok", "[test.noop]"), "--wait"}).status, 0);
  const Ran failed = quasi({"submit", job("bad", "[test.exit]\nstatus = 10"), "--watch"});
  EXPECT_EQ(failed.status, 3) << failed.err;
  EXPECT_NE(failed.out.find("INVALID_INPUT"), std::string::npos) << failed.out;
  EXPECT_EQ(quasi({"submit", job("ok", "[test.noop]"), job("bad", "[test.exit]\nstatus = 10"), "--wait"}).status, 14);

  const std::string id = submit(job("long", "[test.sleep]\nduration = \"60s\""));
  const Ran late = quasi({"wait", id, "--timeout", "300ms"});
  EXPECT_EQ(late.status, 124) << late.err;
  EXPECT_NE(late.err.find("quasi watch last"), std::string::npos) << late.err;
  EXPECT_EQ(quasi({"fetch", id}).status, 10);
  const Ran cancelled = quasi({"cancel", id, "--reason", "enough"});
  EXPECT_EQ(cancelled.status, 0) << cancelled.err;
  EXPECT_EQ(quasi({"wait", id}).status, 4);
  EXPECT_EQ(quasi({"cancel", id}).status, 0);  // again: as it is
}

TEST_F(EndToEnd, SeveralJobsAreCancelledOnlyWhenSaid) {
  const std::string work = "[test.sleep]\nduration = \"60s\"";
  EXPECT_EQ(quasi({"submit", job("a", work), job("b", work)}).status, 0);
  const Ran refused = quasi({"cancel", "last"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.err.find("2 jobs; nothing was done"), std::string::npos) << refused.err;
  EXPECT_EQ(quasi({"cancel", "last", "--yes"}).status, 0);
  EXPECT_EQ(quasi({"wait", "last"}).status, 4);
}

TEST_F(EndToEnd, JobsAreFoundByWhatTheyAre) {
  const std::string a = submit(job("alpha", "[test.noop]"), {"--label", "project=thesis", "--wait"});
  const std::string b = submit(job("beta", "[test.noop]"), {"--wait"});
  EXPECT_EQ(quasi({"list", "-o", "name"}).out, b + "\n" + a + "\n");
  EXPECT_EQ(quasi({"list", "-o", "name", "--oldest-first", "-n", "1"}).out, a + "\n");
  EXPECT_EQ(quasi({"list", "-o", "name", "--label", "project=thesis"}).out, a + "\n");
  EXPECT_EQ(quasi({"list", "-o", "name", "--name", "be"}).out, b + "\n");
  EXPECT_EQ(quasi({"list", "-o", "name", "--state", "active"}).out, "");
  EXPECT_EQ(quasi({"list", "-o", "name", "--since", "1h", "--kind", "test"}).out, b + "\n" + a + "\n");
  EXPECT_EQ(quasi({"show", b.substr(0, 20), "-o", "name"}).out, b + "\n");
  EXPECT_EQ(quasi({"show", "last", "-o", "name"}).out, b + "\n");
  EXPECT_EQ(quasi({"show", "j_000000"}).status, 5);
}

TEST_F(EndToEnd, LogsAreFollowedToTheEnd) {
  const std::string id = submit(job("nap", "[test.sleep]\nduration = \"1s\""));
  const Ran followed = quasi({"logs", "-f", id});
  EXPECT_EQ(followed.status, 0) << followed.err;
  EXPECT_EQ(followed.out, "sleeping\n");
  EXPECT_EQ(quasi({"logs", id}).out, followed.out);
  EXPECT_EQ(quasi({"logs", id, "--attempt", "7"}).status, 5);
}

// What a physicist sees: a deck in, a table out, with the server and without.
TEST_F(EndToEnd, PhysicsFromDeckToTable) {
  const std::string deck = (test::source_dir() / "examples/thermal/silicon-sw").string();
  const Ran ran = quasi({"submit", "thermal", deck, "--set", "ngrid=3 3 3", "--watch"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("thermal conductivity"), std::string::npos) << ran.out;
  EXPECT_NE(ran.err.find("uploaded  deck/CONTROL"), std::string::npos) << ran.err;
  // The same files again: nothing travels.
  const json again = json::parse(quasi({"submit", "thermal", deck, "--set", "ngrid=3 3 3", "--wait", "--json"}).out);
  ASSERT_FALSE(again["inputs"].empty());
  for (const json& input : again["inputs"]) EXPECT_EQ(input["uploaded"], false) << input;
  EXPECT_EQ(quasi({"fetch", "last", "-d", path("out").string()}).status, 0);

  const Ran here = quasi({"run", "thermal", deck, "--set", "ngrid=3 3 3", "-d", path("here").string()});
  EXPECT_EQ(here.status, 0) << here.err;
  EXPECT_NE(here.out.find("thermal conductivity"), std::string::npos) << here.out;
  const json remote = json::parse(slurp(path("out/summary.json")));
  const json local = json::parse(slurp(path("here/summary.json")));
  EXPECT_EQ(remote["summary"]["kappa_w_per_mk"], local["summary"]["kappa_w_per_mk"]);
}

TEST_F(EndToEnd, WrongDecksAreRefusedBeforeAnythingTravels) {
  const std::string deck = (test::source_dir() / "examples/thermal/silicon-sw").string();
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"submit", "thermal", deck, "--set", "TT=300"}, {"validate", "thermal", deck, "--set", "TT=300"},
        {"run", "thermal", deck, "--set", "TT=300", "-d", path("r").string()}}) {
    const Ran ran = quasi(words);
    EXPECT_EQ(ran.status, 9) << words[0] << ": " << ran.err;
    EXPECT_NE(ran.err.find("unknown key"), std::string::npos) << ran.err;
    EXPECT_EQ(ran.err.find("uploaded"), std::string::npos);
  }
  EXPECT_EQ(quasi({"run", "thermal", deck, "--device", "cuda:99", "-d", path("r").string()}).status, 13);
  EXPECT_EQ(quasi({"run", "thermal", path("absent").string(), "-d", path("r").string()}).status, 9);
  EXPECT_EQ(quasi({"run", "thermal", deck, "--divice", "cpu"}).status, 2);
  EXPECT_EQ(quasi({"list", "-o", "name"}).out, "");
  EXPECT_EQ(quasi({"validate", "thermal", deck, "--set", "ngrid=3 3 3"}).status, 0);
}

// The same file is a deck for the engine and a job for the client.
TEST_F(EndToEnd, TheJobTableOfADeckIsTheClients) {
  const std::string deck = file("eq.toml", slurp(test::source_dir() / "examples/mosfet/equilibrium.toml") +
                                              "\n[job]\nname = \"from the deck\"\npriority = 7\n");
  const Ran checked = quasi({"validate", deck});
  EXPECT_EQ(checked.status, 0) << checked.err;
  const json planned = json::parse(quasi({"submit", deck, "--dry-run", "--json"}).out);
  EXPECT_EQ(planned.at("jobs").at(0).at("name"), "from the deck");
  EXPECT_EQ(planned.at("jobs").at(0).at("priority"), 7);

  const std::string wrong = file("wrong.toml", "kind = \"mosfet\"\n[job]\npriorty = 7\n");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"validate", wrong}, {"submit", wrong}, {"run", wrong, "-d", path("r").string()},
        {"run", "mosfet", wrong, "-d", path("r").string()}}) {
    const Ran ran = quasi(words);
    EXPECT_EQ(ran.status, 9) << words[0] << ": " << ran.err;
    EXPECT_NE(ran.err.find("wrong.toml:3: job.priorty: unknown key 'priorty' in 'job'; did you mean 'priority'?"),
              std::string::npos)
        << ran.err;
  }
}

// A TOML deck of each kind, its [job], the files it names and --set, from submission to result; the
// same deck run here gives the same summary.
TEST_F(EndToEnd, TomlDecksOfEveryKindGoTheWholeWay) {
  fs::copy(test::source_dir() / "examples/thermal/silicon-sw", path("silicon-sw"));
  const std::string job_table = "\n[job]\nname = \"mine\"\nmax_runtime = \"5m\"\n";
  struct Deck {
    std::string kind, file, key;
    std::vector<std::string> settings;
  };
  const std::vector<Deck> decks{
      {"thermal", file("sw.toml", "kind = \"thermal\"\ndirectory = \"silicon-sw\"\nngrid = [2, 2, 2]\n" + job_table),
       "kappa_w_per_mk", {"T=350"}},
      {"mosfet", file("mos.toml", slurp(test::source_dir() / "examples/mosfet/equilibrium.toml") + job_table),
       "", {}},
      {"gw", file("gw.toml", slurp(test::source_dir() / "examples/gw/silicon-epm.toml") + job_table), "", {}}};
  for (const Deck& deck : decks) {
    SCOPED_TRACE(deck.kind);
    std::vector<std::string> words{"submit", deck.file, "--wait", "--json"};
    std::vector<std::string> here{"run", deck.file, "-d", path("here-" + deck.kind).string()};
    for (const std::string& setting : deck.settings)
      for (auto* line : {&words, &here}) line->insert(line->end(), {"--set", setting});
    const Ran ran = quasi(words);
    ASSERT_EQ(ran.status, 0) << ran.err << ran.out;
    const json job = json::parse(ran.out)["jobs"][0];
    EXPECT_EQ(job["name"], "mine");
    EXPECT_EQ(job["kind"], deck.kind);
    ASSERT_EQ(quasi({"fetch", job["id"], "-d", path("out-" + deck.kind).string()}).status, 0);
    ASSERT_EQ(quasi(here).status, 0);
    const json remote = json::parse(slurp(path("out-" + deck.kind + "/summary.json")));
    const json local = json::parse(slurp(path("here-" + deck.kind + "/summary.json")));
    ASSERT_FALSE(remote["summary"].empty());
    if (deck.kind == "thermal") {
      EXPECT_EQ(remote["summary"]["temperatures_k"], json::array({350.0}));
      EXPECT_EQ(remote["summary"]["kappa_w_per_mk"], local["summary"]["kappa_w_per_mk"]);
    }
  }
}

TEST_F(EndToEnd, WhatNoKindKnowsIsRefusedWithTheNearestName) {
  const std::string thermal = (test::source_dir() / "examples/thermal/silicon-sw").string();
  const std::string mosfet = (test::source_dir() / "examples/mosfet/equilibrium.toml").string();
  const auto expect_refused = [&](const std::vector<std::string>& deck, const std::vector<std::string>& flags,
                                  const std::string& says) {
    for (const std::string verb : {"validate", "submit", "run"}) {
      std::vector<std::string> words{verb};
      words.insert(words.end(), deck.begin(), deck.end());
      words.insert(words.end(), flags.begin(), flags.end());
      if (verb == "run") words.insert(words.end(), {"-d", path("r").string()});
      const Ran ran = quasi(words);
      EXPECT_EQ(ran.status, 9) << verb << ": " << ran.err;
      EXPECT_NE(ran.err.find(says), std::string::npos) << verb << ": " << ran.err;
    }
  };
  expect_refused({"thermal", thermal}, {"--export", "btw"}, "export 'btw' is unknown for thermal; did you mean 'bte'?");
  expect_refused({mosfet}, {"--export", "bte"}, "a mosfet job writes no further formats");
  expect_refused({"thermal", thermal}, {"--set", "ngird=3 3 3"}, "did you mean 'ngrid'?");
  expect_refused({mosfet}, {"--set", "geometry.chanel_nm=3"}, "did you mean");
  EXPECT_EQ(quasi({"list", "-o", "name"}).out, "");
}

// Broken job files over the whole way: an answer of the table of docs/cli.md, never a crash, never
// an INTERNAL of the server.
TEST_F(EndToEnd, MutatedJobFilesNeverSurpriseServerOrClient) {
  const std::string sound =
      R"({"name": "a", "labels": {"k": "v"}, "priority": 3, "max_runtime": "60s", "test": {"flaky": {"failures": 2, "status": 1}}, "retry": {"max_attempts": 3}, "resources": {"gpus": 1, "cpus": 2}})";
  const std::vector<std::string> pieces{"-1", "1e99", "99999999999", "null", "\"\"", "{}", "[]", "\\u0000", "\xc3", ",", "}", "0.5"};
  for (unsigned seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::string text = sound;
    for (unsigned edits = 1 + random() % 3; edits > 0; --edits) {
      const std::size_t at = random() % text.size();
      if (random() % 2 == 0)
        text.erase(at, 1 + random() % 6);
      else
        text.insert(at, pieces[random() % pieces.size()]);
      if (text.empty()) text = "{";
    }
    const Ran ran = quasi({"validate", file("fuzz.json", text)});
    EXPECT_TRUE(ran.status == 0 || ran.status == 9) << ran.status << ": " << ran.err << text;
    if (ran.status == 9) {
      EXPECT_TRUE(ran.err.find("fuzz.json") != std::string::npos || ran.err.find("jobs[0]") != std::string::npos)
          << ran.err << text;
    }
  }
}

TEST_F(EndToEnd, RunningHereIsCancelledInGoodOrder) {
  const std::string deck = (test::source_dir() / "examples/thermal/silicon-sw").string();
  const auto running = begin({"run", "thermal", deck, "--set", "ngrid=24 24 24", "-d", path("r").string()});
  std::this_thread::sleep_for(milliseconds(1500));
  ASSERT_TRUE(running->running()) << running->err();
  running->send(SIGINT);
  EXPECT_EQ(running->wait_at_most(seconds(60)), 130) << running->err();
  EXPECT_FALSE(fs::exists(path("r/result.h5")));
}

// I16 and I9 as a person meets them: the server dies and comes back while someone watches.
TEST_F(EndToEnd, WatchingSurvivesTheServer) {
  const std::string id = submit(job("steps", "[test.progress]\nsteps = 30\ninterval = \"100ms\""));
  await_state(id, "running");
  const auto watching = begin({"watch", id, "--jsonl"});
  const auto deadline = Clock::now() + seconds(20);
  while (watching->out().find("\"snapshot\"") == std::string::npos && Clock::now() < deadline)
    std::this_thread::sleep_for(milliseconds(20));
  server_->end(SIGKILL);
  std::this_thread::sleep_for(milliseconds(300));
  ASSERT_NO_FATAL_FAILURE(start_server());
  EXPECT_EQ(watching->wait_at_most(seconds(60)), 0) << watching->err();
  int snapshots = 0;
  std::vector<std::uint64_t> states;
  std::istringstream stream(watching->out());
  for (std::string line; std::getline(stream, line);) {
    const json event = json::parse(line, nullptr, false);
    ASSERT_FALSE(event.is_discarded()) << line;
    if (event.value("event", "") == "snapshot") ++snapshots;
    if (event.value("event", "") == "state") states.push_back(event["job_seq"]);
  }
  EXPECT_EQ(snapshots, 1);  // taken up by its token, not begun anew
  EXPECT_TRUE(std::adjacent_find(states.begin(), states.end(),
                                 [](std::uint64_t x, std::uint64_t y) { return y != x + 1; }) == states.end());
  EXPECT_NE(watching->out().find("\"to\":\"succeeded\""), std::string::npos) << watching->out();
}

TEST_F(EndToEnd, AFetchThatWasCutIsContinuedAndVerified) {
  const std::string id = submit(job("big", "[test.emit]\nbytes = 200000000\nseed = 3"), {"--wait"});
  const std::string out = path("out").string();
  const auto fetching = begin_and_catch_midway(id);
  ASSERT_TRUE(fetching) << "too fast to be cut";
  server_->end(SIGKILL);
  ASSERT_NO_FATAL_FAILURE(start_server());
  EXPECT_EQ(fetching->wait_at_most(seconds(60)), 0) << fetching->err();
  EXPECT_EQ(fs::file_size(path("out/data.bin")), 200000000u);

  // A second kind of cut: the person's own, then a damaged part.
  const auto stopped = begin_and_catch_midway(id);
  ASSERT_TRUE(stopped) << "too fast to be cut";
  const fs::path part = path("out/data.bin.part");
  stopped->send(SIGINT);
  const int status = stopped->wait_at_most(seconds(20));
  ASSERT_EQ(status, 130) << stopped->err();
  EXPECT_NE(stopped->err().find("the same command continues"), std::string::npos) << stopped->err();
  ASSERT_TRUE(fs::exists(part));
  EXPECT_FALSE(fs::exists(path("out/data.bin")));
  {
    std::fstream damage(part, std::ios::in | std::ios::out | std::ios::binary);
    damage.seekp(1000);
    damage.put('!').put('?');
  }
  EXPECT_EQ(quasi({"fetch", id, "-d", out, "--artifact", "data.bin"}).status, 11);
  EXPECT_FALSE(fs::exists(path("out/data.bin")));
  EXPECT_EQ(quasi({"fetch", id, "-d", out, "--artifact", "data.bin"}).status, 0);
}

// The promise of the journal: a submission without an answer is repeated without a second effect.
TEST_F(EndToEnd, ASubmissionWithoutAnAnswerIsRepeatedOnce) {
  const std::string noop = job("once", "[test.noop]");
  server_->send(SIGSTOP);  // takes connections, answers nothing
  const auto first = begin({"submit", noop, "--timeout", "1s"});
  EXPECT_EQ(first->wait_at_most(seconds(30)), 8) << first->err();
  server_->send(SIGCONT);
  // It stopped at asking for the capabilities: nothing can have been taken, nothing is pending.
  EXPECT_EQ(quasi({"submit", "--resume"}).err.find("nothing is pending"), 0u);

  // Taken, but the answer was lost: the journal as a crash between the two leaves it.
  EXPECT_EQ(quasi({"submit", noop, "--wait"}).status, 0);
  const json capabilities = json::parse(quasi({"submit", noop, "--dry-run", "--json"}).out);
  const json entry{{"schema", "quasi.pending.v1"},
                   {"request_id", "0d9c4f0e-6a3b-4c55-9d3e-3f6a2b1c0d9e"},
                   {"created_ms", std::chrono::duration_cast<milliseconds>(
                                      std::chrono::system_clock::now().time_since_epoch()).count()},
                   {"address", socket()},
                   {"store_id", ""},
                   {"request", {{"request_id", "0d9c4f0e-6a3b-4c55-9d3e-3f6a2b1c0d9e"},
                                {"jobs", capabilities["jobs"]}}}};
  file("state/pending/0d9c4f0e-6a3b-4c55-9d3e-3f6a2b1c0d9e.json", entry.dump());
  EXPECT_NE(quasi({"list"}).err.find("1 submission has no answer yet"), std::string::npos);
  const Ran sent = quasi({"submit", "--resume", "-o", "name"});
  EXPECT_EQ(sent.status, 0) << sent.err;
  file("state/pending/0d9c4f0e-6a3b-4c55-9d3e-3f6a2b1c0d9e.json", entry.dump());
  const Ran again = quasi({"submit", "--resume", "-o", "name"});
  EXPECT_EQ(again.out, sent.out);
  EXPECT_NE(again.err.find("had been taken"), std::string::npos) << again.err;
  EXPECT_EQ(quasi({"list", "-o", "name", "--name", "once"}).out.size(), 2 * sent.out.size());
  EXPECT_TRUE(fs::is_empty(path("state/pending")));
}

TEST_F(EndToEnd, InterruptedWatchingLeavesTheJobAlone) {
  const std::string id = submit(job("long", "[test.sleep]\nduration = \"60s\""));
  const auto watching = begin({"watch", id});
  const auto deadline = Clock::now() + seconds(20);
  while (watching->err().find("running") == std::string::npos && Clock::now() < deadline)
    std::this_thread::sleep_for(milliseconds(20));
  watching->send(SIGINT);
  EXPECT_EQ(watching->wait_at_most(seconds(10)), 130);
  EXPECT_NE(watching->err().find("the job goes on; come back with: quasi watch last"), std::string::npos)
      << watching->err();
  await_state(id, "running");
  const auto waiting = begin({"wait", id});
  std::this_thread::sleep_for(milliseconds(200));
  waiting->send(SIGTERM);
  EXPECT_EQ(waiting->wait_at_most(seconds(10)), 143);
  quasi({"cancel", id});
}

TEST_F(EndToEnd, NoServerIsSaidInTwoLines) {
  submit(job("a", "[test.noop]"));  // so that "last" is known without asking
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"list"}, {"watch", "last"}, {"wait", "last"}, {"fetch", "last"}}) {
    std::vector<std::string> line{"quasi", "--server", "unix:" + path("nothing").string()};
    line.insert(line.end(), words.begin(), words.end());
    const auto nowhere = spawn("nowhere-" + words.front(), line);
    EXPECT_EQ(nowhere->wait_at_most(seconds(20)), 8) << words.front();
    const std::string err = nowhere->err();
    EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 2) << err;
    EXPECT_EQ(nowhere->out(), "");
  }
}

TEST_F(EndToEnd, StandardOutputThatIsFullIsAnError) {
  submit(job("a", "[test.noop]"));
  const std::string command = std::string(QUASI_BINARY_DIR) + "/quasi --server " + socket() + " list > /dev/full 2>/dev/null";
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 12);
}

// What a person waits for before anything happens. The claim is checked on the processor time of a
// start, which other programs on the machine do not stretch; the wall time is printed beside it.
TEST(Start, TheProgramIsThereAtOnce) {
  const std::string program = std::string(QUASI_BINARY_DIR) + "/quasi";
  double best_wall_s = 1e9;
  double best_cpu_s = 1e9;
  const auto cpu_of_children_s = [] {
    rusage usage{};
    getrusage(RUSAGE_CHILDREN, &usage);
    const auto in_s = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return in_s(usage.ru_utime) + in_s(usage.ru_stime);
  };
  const test::TemporaryDirectory directory;
  for (int i = 0; i < 20; ++i) {
    const double cpu_before_s = cpu_of_children_s();
    const auto start = Clock::now();
    Process process({program, "--version"}, directory.path() / "start", {});
    ASSERT_EQ(process.wait(), 0);
    best_wall_s = std::min(best_wall_s, std::chrono::duration<double>(Clock::now() - start).count());
    best_cpu_s = std::min(best_cpu_s, cpu_of_children_s() - cpu_before_s);
  }
  std::printf("best of 20 starts: %.1f ms processor time, %.1f ms wall time\n", 1e3 * best_cpu_s,
              1e3 * best_wall_s);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(best_cpu_s, 0.030);
#endif
}

}  // namespace
}  // namespace quasi::client
