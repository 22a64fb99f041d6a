// Tests commands that are interrupted, cut off or left without a server, and the start-up time of
// the program.

#include <poll.h>
#include <sys/resource.h>

#include <algorithm>

#include "tests/service/support/client_fixture.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/support/temporary_directory.hpp"

namespace quasi::client {
namespace {

TEST_F(EndToEnd, RunningHereIsCancelledInGoodOrder) {
  const std::string deck = (test::source_dir() / "examples/thermal/silicon-sw").string();
  // The signal arrives while the engine computes, and at moments when the engine may not handle
  // signals yet.
  for (const int wait_ms : {-1, 0, 10, 20, 40, 80}) {
    SCOPED_TRACE(wait_ms);
    const auto running =
        begin({"run", "thermal", deck, "--set", "ngrid=24 24 24", "-d", path("r").string()});
    if (wait_ms >= 0)
      std::this_thread::sleep_for(milliseconds(wait_ms));
    else
      for (const auto deadline = Clock::now() + kHang;
           !fs::exists(path("r")) && Clock::now() < deadline;)
        std::this_thread::sleep_for(milliseconds(1));
    running->send(SIGINT);
    EXPECT_EQ(running->wait_at_most(), 130) << running->err();
    EXPECT_EQ(running->err().find("killed"), std::string::npos) << running->err();
    EXPECT_FALSE(fs::exists(path("r/result.h5")));
  }
}

// A script replaces the engine, so that the presence of a checkpoint does not depend on timing.
TEST_F(EndToEnd, WhoStopsARunHearsOfItsCheckpoint) {
  file("engine",
       "#!/bin/bash\ntrap 'exit 14' INT TERM\nmkdir -p \"$5/checkpoint\"\n[ \"$5\" = " +
           path("kept").string() +
           " ] && touch \"$5/checkpoint/ckpt-1\"\ntouch \"$5/up\"\nwhile :; do sleep 0.05; done\n");
  fs::permissions(path("engine"), fs::perms::owner_all);
  for (const std::string out : {"kept", "empty"}) {
    const auto running = spawn("run-" + out,
                               {"quasi", "run", "mosfet",
                                (test::source_dir() / "examples/mosfet/equilibrium.toml").string(),
                                "-d", path(out).string()},
                               {"QUASI_ENGINE=" + path("engine").string()});
    for (const auto deadline = Clock::now() + kHang;
         !fs::exists(path(out) / "up") && Clock::now() < deadline;)
      std::this_thread::sleep_for(milliseconds(1));
    running->send(SIGINT);
    EXPECT_EQ(running->wait_at_most(), 130) << running->err();
    EXPECT_EQ(running->err().find("another run into '" + path(out).string() + "' discards it") !=
                  std::string::npos,
              out == "kept")
        << running->err();
  }
}

// I16 and I9 for a user: the server dies and restarts during a watch.
TEST_F(EndToEnd, WatchingSurvivesTheServer) {
  const std::string id =
      submit(job("steps", "[test.progress]\nsteps = 1000000\ninterval = \"100ms\""));
  await_state(id, "running");
  const auto watching = begin({"watch", id, "--jsonl"});
  // Progress follows the bookmark after the snapshot, so from here on the watch has a token.
  ASSERT_NO_FATAL_FAILURE(await_output(*watching, &Process::out, "\"event\":\"progress\""));
  server_->end(SIGKILL);
  ASSERT_NO_FATAL_FAILURE(await_output(*watching, &Process::err, "trying again"));
  ASSERT_NO_FATAL_FAILURE(start_server());
  EXPECT_EQ(quasi({"cancel", id}).status, 0);
  EXPECT_EQ(watching->wait_at_most(), 4) << watching->err();
  int snapshots = 0;
  std::vector<std::uint64_t> states;
  std::istringstream stream(watching->out());
  for (std::string line; std::getline(stream, line);) {
    const json event = json::parse(line, nullptr, false);
    ASSERT_FALSE(event.is_discarded()) << line;
    if (event.value("event", "") == "snapshot") ++snapshots;
    if (event.value("event", "") == "state") states.push_back(event["job_seq"]);
  }
  EXPECT_EQ(snapshots, 1);  // the watch continued by its token and did not begin again
  EXPECT_TRUE(std::adjacent_find(states.begin(), states.end(),
                                 [](std::uint64_t x, std::uint64_t y) { return y != x + 1; }) ==
              states.end());
  EXPECT_NE(watching->out().find("\"to\":\"cancelled\""), std::string::npos) << watching->out();
}

TEST_F(EndToEnd, AFetchThatWasCutIsContinuedAndVerified) {
  const std::string id = submit(job("big", "[test.emit]\nbytes = 200000000\nseed = 3"), {"--wait"});
  const std::string out = path("out").string();
  const auto fetching = begin_and_hold_midway(id, 200000000u);
  ASSERT_TRUE(fetching) << "too fast to be cut";
  server_->end(SIGKILL);
  ASSERT_NO_FATAL_FAILURE(start_server());
  fetching->send(SIGCONT);
  EXPECT_EQ(fetching->wait_at_most(), 0) << fetching->err();
  EXPECT_EQ(fs::file_size(path("out/data.bin")), 200000000u);

  // Two more cuts: one by the user, and one by a damaged part.
  const fs::path part = path("out/data.bin.part");
  std::unique_ptr<Process> stopped;
  int status = 0;
  for (int attempt = 0; status == 0 && attempt < 20;
       ++attempt) {  // 0: the transfer ended before the signal was handled
    stopped = begin_and_hold_midway(id, 200000000u);
    ASSERT_TRUE(stopped) << "too fast to be cut";
    stopped->send(SIGINT);
    stopped->send(SIGCONT);
    status = stopped->wait_at_most();
  }
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

// The journal's promise: a submission without an answer is repeated without a second effect.
TEST_F(EndToEnd, ASubmissionWithoutAnAnswerIsRepeatedOnce) {
  const std::string noop = job("once", "[test.noop]");
  server_->send(SIGSTOP);  // accepts connections and answers nothing
  const auto first = begin({"submit", noop, "--timeout", "1s"});
  EXPECT_EQ(first->wait_at_most(), 8) << first->err();
  server_->send(SIGCONT);
  // The command stopped while it asked for the capabilities, so no submission was accepted or is
  // pending.
  EXPECT_EQ(quasi({"submit", "--resume"}).err.find("no submission is pending"), 0u);

  // The submission was accepted but its answer was lost. The journal is as after a crash between
  // the two.
  EXPECT_EQ(quasi({"submit", noop, "--wait"}).status, 0);
  const json capabilities = json::parse(quasi({"submit", noop, "--dry-run", "--json"}).out);
  const json entry{
      {"schema", "quasi.pending.v1"},
      {"request_id", "0d9c4f0e-6a3b-4c55-9d3e-3f6a2b1c0d9e"},
      {"created_ms",
       std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch())
           .count()},
      {"address", socket()},
      {"store_id", ""},
      {"request",
       {{"request_id", "0d9c4f0e-6a3b-4c55-9d3e-3f6a2b1c0d9e"}, {"jobs", capabilities["jobs"]}}}};
  file("state/pending/0d9c4f0e-6a3b-4c55-9d3e-3f6a2b1c0d9e.json", entry.dump());
  EXPECT_NE(quasi({"list"}).err.find("1 submission has no answer yet"), std::string::npos);
  const Ran sent = quasi({"submit", "--resume", "-o", "name"});
  EXPECT_EQ(sent.status, 0) << sent.err;
  file("state/pending/0d9c4f0e-6a3b-4c55-9d3e-3f6a2b1c0d9e.json", entry.dump());
  const Ran again = quasi({"submit", "--resume", "-o", "name"});
  EXPECT_EQ(again.out, sent.out);
  EXPECT_NE(again.err.find("was already accepted"), std::string::npos) << again.err;
  EXPECT_EQ(quasi({"list", "-o", "name", "--name", "once"}).out.size(), 2 * sent.out.size());
  EXPECT_TRUE(fs::is_empty(path("state/pending")));
}

TEST_F(EndToEnd, InterruptedWatchingLeavesTheJobAlone) {
  const std::string id = submit(job("long", "[test.sleep]\nduration = \"10h\""));
  const auto watching = begin({"watch", id});
  ASSERT_NO_FATAL_FAILURE(await_output(*watching, &Process::err, "running"));
  watching->send(SIGINT);
  EXPECT_EQ(watching->wait_at_most(), 130);
  EXPECT_NE(watching->err().find("the job continues; follow it again with: quasi watch last"),
            std::string::npos)
      << watching->err();
  await_state(id, "running");
  const auto waiting = begin({"wait", id});
  std::this_thread::sleep_for(milliseconds(200));
  waiting->send(SIGTERM);
  EXPECT_EQ(waiting->wait_at_most(), 143);
  quasi({"cancel", id});
}

TEST_F(EndToEnd, NoServerIsSaidInTwoLines) {
  submit(job("a", "[test.noop]"));  // "last" then needs no server
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"list"}, {"watch", "last"}, {"wait", "last"}, {"fetch", "last"}}) {
    std::vector<std::string> line{"quasi", "--server", "unix:" + path("nothing").string()};
    line.insert(line.end(), words.begin(), words.end());
    const auto nowhere = spawn("nowhere-" + words.front(), line);
    EXPECT_EQ(nowhere->wait_at_most(), 8) << words.front();
    const std::string err = nowhere->err();
    EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 2) << err;
    EXPECT_EQ(nowhere->out(), "");
  }
}

TEST_F(EndToEnd, StandardOutputThatIsFullIsAnError) {
  submit(job("a", "[test.noop]"));
  const std::string command = std::string(QUASI_BINARY_DIR) + "/quasi --server " + socket() +
                              " list > /dev/full 2>/dev/null";
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 12);
}

// `quasi run ... | head`: the reader ends before the first byte is written.
TEST_F(EndToEnd, ARunWhoseReaderIsGoneEndsAsEveryProgramInAPipeDoes) {
  const std::string command =
      "mkfifo " + path("pipe").string() + " && exec 3<>" + path("pipe").string() + " 4>" +
      path("pipe").string() + " 3<&- && " + QUASI_BINARY_DIR + "/quasi run mosfet " +
      (test::source_dir() / "examples/mosfet/equilibrium.toml").string() + " -d " +
      path("out").string() + " --json >&4 2>" + path("err").string();
  const int end = std::system(("bash -c '" + command + "'").c_str());
  ASSERT_TRUE(WIFEXITED(end) || WTERMSIG(end) == SIGPIPE);
  if (WIFEXITED(end)) {
    EXPECT_EQ(WEXITSTATUS(end), 128 + SIGPIPE);
  }
  EXPECT_EQ(slurp(path("err")).find("error"), std::string::npos) << slurp(path("err"));
  EXPECT_TRUE(fs::exists(path("out") / "result.h5")) << "what was computed is there";
}

// Tests the time until the program starts. The limit holds for processor time, which other programs
// on the machine do not stretch. The wall time is printed beside it.
TEST(Start, TheProgramIsThereAtOnce) {
  const std::string program = std::string(QUASI_BINARY_DIR) + "/quasi";
  double best_wall_s = 1e9;
  double best_cpu_s = 1e9;
  const auto cpu_of_children_s = [] {
    rusage usage{};
    getrusage(RUSAGE_CHILDREN, &usage);
    const auto seconds_of = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  };
  const test::TemporaryDirectory directory;
  for (int i = 0; i < 20; ++i) {
    const double cpu_before_s = cpu_of_children_s();
    const auto start = Clock::now();
    Process process({program, "--version"}, directory.path() / "start", {});
    ASSERT_EQ(process.wait(), 0);
    best_wall_s =
        std::min(best_wall_s, std::chrono::duration<double>(Clock::now() - start).count());
    best_cpu_s = std::min(best_cpu_s, cpu_of_children_s() - cpu_before_s);
  }
  std::printf("best of 20 starts: %.1f ms processor time, %.1f ms wall time\n", 1e3 * best_cpu_s,
              1e3 * best_wall_s);
#if !defined(QUASI_SANITIZED)
  EXPECT_LT(best_cpu_s, 0.030);
#endif
}

}  // namespace
}  // namespace quasi::client
