// Tests real engines under a real spawner, without a server: the environment of a child, and the
// fate of children that crash, hang, send false messages or lose their daemon.

#include <google/protobuf/util/time_util.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <set>
#include <sstream>

#include "proto/wire/packet_socket.hpp"
#include "tests/service/support/program.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/daemon/ports/local_spawner.hpp"

namespace quasi::test {
namespace {

namespace fs = std::filesystem;

class Recorder : public ChildEvents {
 public:
  void on_report(const v1::EngineReport& report) override { reports.push_back(report); }
  void on_garbage() override { garbage = true; }
  void on_exit(const ChildExit& how, const ChildUsage& used) override {
    exit = how;
    usage = used;
  }
  bool has(v1::EngineReport::ReportCase what) const {
    for (const auto& report : reports)
      if (report.report_case() == what) return true;
    return false;
  }
  std::vector<v1::EngineReport> reports;
  bool garbage = false;
  std::optional<ChildExit> exit;
  ChildUsage usage;
};

class EngineProcess : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"in", "out", "ckpt", "cache"})
      fs::create_directory(directory.path() / name);
  }
  LaunchPlan plan() const {
    return {.working_directory = directory.path(),
            .log = directory.path() / "log.txt",
            .environment = {"PATH=/usr/bin", "CUDA_VISIBLE_DEVICES="}};
  }
  void start(const v1::TestWork& work) {
    v1::EngineStart message;
    message.set_kind("test");
    *message.mutable_test() = work;
    start(message);
  }
  void start(const v1::EngineStart& message) {
    LaunchPlan launch = plan();
    launch.max_ram_bytes = max_ram_bytes;
    child = spawner.spawn(launch, events);
    v1::EngineCommand command;
    auto* start = command.mutable_start();
    *start = message;
    start->set_output_directory("out");
    start->set_checkpoint_directory("ckpt");
    start->set_attempt_number(1);
    start->add_devices("cpu");
    ASSERT_TRUE(child->send(command));
  }
  bool turn_until(const std::function<bool()>& holds, double seconds = kHangSeconds) {
    const auto deadline = within(seconds);
    while (!holds()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      loop.run_once(std::min(deadline, within(0.05)));
    }
    return true;
  }
  bool turn_until_exit() {
    return turn_until([&] { return events.exit.has_value(); });
  }
  std::string text_of(const fs::path& path) {
    std::ifstream in(path);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }

  TemporaryDirectory directory;
  EventLoop loop;
  LocalSpawner spawner{loop,
                       {.engine = Program::path_of("quasi-engine"),
                        .cage = Program::path_of("quasi-cage"),
                        .max_file_bytes = 1 << 20}};
  Recorder events;
  std::unique_ptr<EngineChild> child;
  std::uint64_t max_ram_bytes = 0;
};

TEST_F(EngineProcess, TellsItsStartAndItsResult) {
  v1::TestWork work;
  work.mutable_noop();
  start(work);
  ASSERT_TRUE(turn_until_exit());
  EXPECT_EQ(events.exit->exit_status, 0);
  EXPECT_TRUE(events.has(v1::EngineReport::kStarted));
  EXPECT_TRUE(events.has(v1::EngineReport::kResultReady));
  EXPECT_GT(events.usage.peak_ram_bytes, 1 << 20);
  EXPECT_NE(text_of(directory.path() / "out" / "summary.json").find("noop"), std::string::npos);
}

/// Message of the failure that the engine reported; "" if it reported none.
std::string failure_message(const Recorder& events) {
  for (const auto& report : events.reports)
    if (report.has_failed()) return report.failed().message();
  return "";
}

// The deck of an attempt comes from another user, so the engine reads only files below in/,
// whatever the deck names.
TEST_F(EngineProcess, ADeckReadsNoFileOutsideItsInputs) {
  const TemporaryDirectory others;
  std::ofstream(others.path() / "profile.csv") << "0 1e25\nSECRET\n";
  for (const char* name : {"CONTROL", "WFN"}) std::ofstream(others.path() / name) << "SECRET\n";
  const std::string outside = others.path().string();
  struct Case {
    std::string kind, deck, key, value;
  };
  const std::vector<Case> cases{
      {"mosfet", "[doping]\nprofile = \"" + outside + "/profile.csv\"\n", "", ""},
      {"mosfet", "[doping]\nprofile = \"../log.txt\"\n", "", ""},
      {"mosfet", "", "doping.profile", "\"" + outside + "/profile.csv\""},
      {"thermal", "directory = \"" + outside + "\"\n", "", ""},
      {"gw",
       "[meanfield]\nwfn = \"" + outside +
           "/WFN\"\nrho = \"RHO\"\nvxc = \"VXC\"\n[epsilon]\ncutoff_ry = 10.0\n",
       "", ""},
  };
  for (const Case& hostile : cases) {
    SCOPED_TRACE(hostile.kind + " " + hostile.deck + hostile.key);
    std::ofstream(directory.path() / "in" / "deck.toml") << "kind = \"" << hostile.kind << "\"\n"
                                                         << hostile.deck;
    v1::EngineStart message;
    message.set_kind(hostile.kind);
    message.set_deck_path("in/deck.toml");
    if (!hostile.key.empty()) {
      auto* setting = message.add_settings();
      setting->set_key(hostile.key);
      setting->set_value(hostile.value);
    }
    start(message);
    ASSERT_TRUE(turn_until_exit());
    EXPECT_EQ(events.exit->exit_status, 10);
    EXPECT_NE(failure_message(events).find("lies outside the deck's directory"), std::string::npos)
        << failure_message(events);
    EXPECT_EQ(text_of(directory.path() / "log.txt").find("SECRET"), std::string::npos);
    events = Recorder();
  }
}

TEST_F(EngineProcess, HasItsOwnGroupFourDescriptorsAndThePlansEnvironment) {
  setenv("QUASI_TEST_SECRET", "not for children", 1);
  v1::TestWork work;
  work.mutable_hang();
  start(work);
  ASSERT_TRUE(turn_until([&] { return events.has(v1::EngineReport::kStarted); }));
  const auto pid = static_cast<pid_t>(child->identity().pid);
  EXPECT_EQ(getpgid(pid), pid);
  const std::string proc = "/proc/" + std::to_string(pid);
  std::set<std::string> descriptors;
  for (const auto& entry : fs::directory_iterator(proc + "/fd"))
    descriptors.insert(entry.path().filename());
  EXPECT_EQ(descriptors, (std::set<std::string>{"0", "1", "2", "3"}));
  const std::string environment = text_of(proc + "/environ");
  EXPECT_EQ(environment.find("QUASI_TEST_SECRET"), std::string::npos);
  EXPECT_NE(environment.find("CUDA_VISIBLE_DEVICES="), std::string::npos);
  EXPECT_NE(environment.find("GOMP_SPINCOUNT=1000"), std::string::npos);
  EXPECT_NE(text_of(proc + "/limits").find("Max core file size        0"), std::string::npos);
  // Inside its cage the child has a network namespace with nothing but a loopback, a filter of
  // system calls and no way to new privileges.
  for (const auto& report : events.reports)
    if (report.has_started() && report.started().caged()) {
      EXPECT_EQ(text_of(proc + "/net/dev").find("eth"), std::string::npos);
      EXPECT_NE(text_of(proc + "/status").find("Seccomp:\t2"), std::string::npos);
      EXPECT_NE(text_of(proc + "/status").find("NoNewPrivs:\t1"), std::string::npos);
    }
  unsetenv("QUASI_TEST_SECRET");
  child->signal_group(SIGKILL);
  ASSERT_TRUE(turn_until_exit());
  EXPECT_EQ(events.exit->signal, SIGKILL);
  EXPECT_FALSE(events.exit->killed_for_memory);
}

TEST_F(EngineProcess, MemoryIsLimitedAsTheJobAsks) {
  max_ram_bytes = std::uint64_t{3} << 30;
  v1::TestWork work;
  work.mutable_hang();
  start(work);
  ASSERT_TRUE(turn_until([&] { return events.has(v1::EngineReport::kStarted); }));
  const std::string limits = text_of("/proc/" + std::to_string(child->identity().pid) + "/limits");
  EXPECT_NE(limits.find("Max data size             3221225472"), std::string::npos) << limits;
  child->signal_group(SIGKILL);
  ASSERT_TRUE(turn_until_exit());
}

TEST_F(EngineProcess, ObeysACancelLongBeforeItsWorkIsDone) {
  v1::TestWork work;
  *work.mutable_sleep()->mutable_duration() =
      google::protobuf::util::TimeUtil::SecondsToDuration(36'000);
  start(work);
  ASSERT_TRUE(turn_until([&] { return events.has(v1::EngineReport::kStarted); }));
  v1::EngineCommand command;
  command.mutable_cancel();
  child->send(command);
  ASSERT_TRUE(turn_until_exit());
  EXPECT_EQ(events.exit->exit_status, v1::ENGINE_EXIT_CANCELLED);
}

TEST_F(EngineProcess, AStubbornChildDiesOfSigkillAlone) {
  v1::TestWork work;
  work.mutable_hang()->set_ignore_sigterm(true);
  start(work);
  ASSERT_TRUE(turn_until([&] { return events.has(v1::EngineReport::kStarted); }));
  v1::EngineCommand command;
  command.mutable_cancel();
  child->send(command);
  // SIGTERM must be ignored before the kill is sent. /proc shows when that holds.
  const std::string status = "/proc/" + std::to_string(child->identity().pid) + "/status";
  ASSERT_TRUE(turn_until([&] {
    const std::string text = text_of(status);
    const auto ignored = text.find("SigIgn:\t");
    return ignored != std::string::npos &&
           (std::stoull(text.substr(ignored + 8, 16), nullptr, 16) & (1ULL << (SIGTERM - 1))) != 0;
  }));
  child->signal_group(SIGTERM);
  EXPECT_FALSE(turn_until([&] { return events.exit.has_value(); }, 0.3));
  child->signal_group(SIGKILL);
  ASSERT_TRUE(turn_until_exit());
  EXPECT_EQ(events.exit->signal, SIGKILL);
}

TEST_F(EngineProcess, ACrashIsASignalAndExitIsAStatus) {
  v1::TestWork work;
  work.mutable_signal()->set_number(SIGABRT);
  start(work);
  ASSERT_TRUE(turn_until_exit());
  EXPECT_EQ(events.exit->signal, SIGABRT);
  events = {};
  work.mutable_exit()->set_status(15);
  start(work);
  ASSERT_TRUE(turn_until_exit());
  EXPECT_EQ(events.exit->exit_status, 15);
}

TEST_F(EngineProcess, GarbageIsNoticed) {
  v1::TestWork work;
  work.mutable_garbage_ipc()->set_bytes(100);
  start(work);
  ASSERT_TRUE(turn_until([&] { return events.garbage; }));
  child->signal_group(SIGKILL);
  ASSERT_TRUE(turn_until_exit());
}

TEST_F(EngineProcess, FilesAreLimitedAsConfigured) {
  v1::TestWork work;
  work.mutable_emit()->set_bytes(4 << 20);  // 1 MiB is allowed
  start(work);
  ASSERT_TRUE(turn_until_exit());
  EXPECT_TRUE(events.exit->signal == SIGXFSZ ||
              events.exit->exit_status == v1::ENGINE_EXIT_STORAGE);
  EXPECT_FALSE(events.has(v1::EngineReport::kResultReady));
}

// CUDA's libraries compile kernels as they run. Without a cache they do so for each of their plans.
TEST_F(EngineProcess, ACagedEngineKeepsCompiledKernels) {
  const fs::path engine = directory.path() / "in" / "engine";
  std::ofstream(engine) << "#!/bin/sh\n: > cache/kernel\n";
  fs::permissions(engine, fs::perms::owner_all);
  LocalSpawner spawner_of_script(loop, {.engine = engine, .cage = Program::path_of("quasi-cage")});
  child = spawner_of_script.spawn(plan(), events);
  ASSERT_TRUE(turn_until_exit());
  EXPECT_EQ(events.exit->exit_status, 0) << text_of(directory.path() / "log.txt");
  EXPECT_TRUE(fs::exists(directory.path() / "cache" / "kernel"));
}

TEST_F(EngineProcess, EmitsTheSameBytesForTheSameSeed) {
  v1::TestWork work;
  work.mutable_emit()->set_bytes(100'003);
  work.mutable_emit()->set_seed(7);
  start(work);
  ASSERT_TRUE(turn_until_exit());
  const std::string first = text_of(directory.path() / "out" / "data.bin");
  EXPECT_EQ(first.size(), 100'003U);
  events = {};
  start(work);
  ASSERT_TRUE(turn_until_exit());
  EXPECT_EQ(text_of(directory.path() / "out" / "data.bin"), first);
}

TEST_F(EngineProcess, ResumesFromTheNewestCheckpoint) {
  v1::TestWork work;
  work.mutable_checkpointing()->set_steps(3);
  start(work);
  ASSERT_TRUE(turn_until_exit());
  events = {};
  work.mutable_checkpointing()->set_steps(5);
  start(work);
  ASSERT_TRUE(turn_until_exit());
  EXPECT_EQ(text_of(directory.path() / "out" / "steps.txt"), "attempt 1: 1..3\nattempt 1: 4..5\n");
}

TEST_F(EngineProcess, AnEngineThatIsNoneCannotBeStarted) {
  LocalSpawner nothing(loop, {.engine = "/nonexistent/quasi-engine"});
  EXPECT_THROW(nothing.spawn(plan(), events), std::runtime_error);
}

TEST_F(EngineProcess, WithoutADaemonItSaysWhoMayStartIt) {
  Program engine("quasi-engine", {"exec", "--ipc-fd", "0"}, directory.path() / "engine.log");
  const auto status = engine.wait();
  ASSERT_TRUE(status);
  EXPECT_NE(engine.output().find("quasi-worker"), std::string::npos) << engine.output();
}

// A stray engine of an earlier daemon is killed by its identity. A process that only reuses its id
// is left alone.
TEST_F(EngineProcess, StraysAreEndedByPidAndStartTime) {
  v1::TestWork work;
  work.mutable_hang()->set_ignore_sigterm(true);
  start(work);
  ASSERT_TRUE(turn_until([&] { return events.has(v1::EngineReport::kStarted); }));
  ProcessIdentity other = child->identity();
  ++other.start_ticks;
  EXPECT_TRUE(spawner.end_stray(other, Milliseconds(0)));
  EXPECT_FALSE(turn_until([&] { return events.exit.has_value(); }, 0.1));
  EXPECT_TRUE(spawner.end_stray(child->identity(), Milliseconds(60'000)));
  ASSERT_TRUE(turn_until_exit());
}

TEST(PacketSocket, RefusesWhatIsTooLong) {
  auto [ours, theirs] = PacketSocket::make_pair();
  v1::EngineReport report;
  report.mutable_log()->set_line(std::string(kMaxPacketBytes, 'x'));
  EXPECT_EQ(ours.send(report, PacketSocket::Wait::kYes), PacketSocket::Sent::kTooLarge);
  const std::string bytes(kMaxPacketBytes + 1, 'x');
  ASSERT_TRUE(ours.send_bytes(bytes.data(), bytes.size()));
  EXPECT_EQ(theirs.receive(report, PacketSocket::Wait::kYes), PacketSocket::Received::kGarbage);
  EXPECT_EQ(theirs.receive(report, PacketSocket::Wait::kNo), PacketSocket::Received::kNothing);
  ours.close();
  EXPECT_EQ(theirs.receive(report, PacketSocket::Wait::kYes), PacketSocket::Received::kClosed);
}

}  // namespace
}  // namespace quasi::test
