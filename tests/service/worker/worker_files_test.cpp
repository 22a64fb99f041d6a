// Tests the daemon's smaller parts: input cache, devices, configuration.

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "proto/wire/digest.hpp"
#include "tests/service/support/worker_world.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/daemon/attempt/engine_launch.hpp"
#include "workers/daemon/error.hpp"
#include "workers/daemon/ports/posix_file_system.hpp"
#include "workers/daemon/worker_config.hpp"
#include "workers/daemon/worker_identity.hpp"

namespace quasi::test {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

class WorkerCache : public testing::Test {
 protected:
  void place(InputCache& cache, const std::string& bytes, const fs::path& to) {
    cache.provide(wire::sha256_hex(bytes), bytes.size(), to, [&](const fs::path& part) {
      ++fetches;
      write(part, bytes);
    });
  }
  TemporaryDirectory directory;
  PosixFileSystem files;
  int fetches = 0;
};

TEST_F(WorkerCache, FetchesOnceAndForgetsTheOldestFirst) {
  InputCache cache(files, directory.path() / "cache", 10);
  place(cache, "four", directory.path() / "a");
  place(cache, "five5", directory.path() / "b");
  place(cache, "four", directory.path() / "c");  // used again, so "five5" is the oldest
  EXPECT_EQ(fetches, 2);
  place(cache, "six666", directory.path() / "d");
  EXPECT_EQ(cache.size_bytes(), 10U);
  place(cache, "four", directory.path() / "e");
  EXPECT_EQ(fetches, 3);
  place(cache, "five5", directory.path() / "f");
  EXPECT_EQ(fetches, 4);
  EXPECT_EQ(files.read_file(directory.path() / "f"), "five5");
  EXPECT_EQ(files.read_file(directory.path() / "b"), "five5") << "placed files outlive the cache's";
}

TEST_F(WorkerCache, RefusesOtherBytesThanTheDigests) {
  InputCache cache(files, directory.path() / "cache", 100);
  EXPECT_THROW(cache.provide(wire::sha256_hex("right"), 5, directory.path() / "a",
                             [](const fs::path& part) { write(part, "wrong"); }),
               StorageFailure);
  EXPECT_FALSE(files.exists(directory.path() / "a"));
  place(cache, "right", directory.path() / "a");
}

TEST_F(WorkerCache, HashesWhatAnEarlierDaemonLeftBeforeUsingIt) {
  const std::string digest = wire::sha256_hex("sound");
  files.make_directory(directory.path() / "cache");
  write(directory.path() / "cache" / digest, "rottn");
  write(directory.path() / "cache" / (digest + ".new"), "half a fetch");
  InputCache cache(files, directory.path() / "cache", 100);
  EXPECT_EQ(files.list(directory.path() / "cache").size(), 1U);
  place(cache, "sound", directory.path() / "a");
  EXPECT_EQ(fetches, 1);
  EXPECT_EQ(files.read_file(directory.path() / "a"), "sound");
}

TEST_F(WorkerCache, ServesManyCallersWithOneFetch) {
  InputCache cache(files, directory.path() / "cache", 100);
  std::atomic<int> n_fetches{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i)
    callers.emplace_back([&, i] {
      cache.provide(wire::sha256_hex("shared"), 6, directory.path() / std::to_string(i),
                    [&](const fs::path& part) {
                      ++n_fetches;
                      write(part, "shared");
                    });
    });
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(n_fetches, 1);
}

class WorkerDevices : public testing::Test {
 protected:
  void describe(const std::string& text) { write(directory.path() / "devices.toml", text); }
  TemporaryDirectory directory;
  QuietLog log;
};

TEST_F(WorkerDevices, AreQuarantinedForFaultsAndComeBack) {
  describe("[[device]]\nuuid = 'GPU-0'\n[[device]]\nuuid = 'GPU-1'\nslots = 2\n");
  const auto source = make_fake_devices(directory.path() / "devices.toml");
  DeviceBoard board(*source, log);
  EXPECT_EQ(board.free_slots().size(), 3U);
  describe(
      "[[device]]\nuuid = 'GPU-0'\nfault = 'Xid 79'\n[[device]]\nuuid = 'GPU-1'\nlost = true\n");
  board.refresh();
  EXPECT_TRUE(board.free_slots().empty());
  EXPECT_EQ(board.describe()[0].state(), v1::DEVICE_STATE_QUARANTINED);
  EXPECT_EQ(board.describe()[0].state_reason(), "Xid 79");
  EXPECT_EQ(board.describe()[1].state(), v1::DEVICE_STATE_LOST);
  describe("[[device]]\nuuid = 'GPU-0'\nlost = true\n[[device]]\nuuid = 'GPU-1'\nlost = true\n");
  EXPECT_THROW(board.refresh(), DevicesLost);
  describe("[[device]]\nuuid = 'GPU-0'\n[[device]]\nuuid = 'GPU-1'\n");
  board.refresh();
  EXPECT_EQ(board.free_slots().size(), 3U);
}

TEST_F(WorkerDevices, ThreeFaultsInARowQuarantine) {
  describe("[[device]]\nuuid = 'GPU-0'\n");
  const auto source = make_fake_devices(directory.path() / "devices.toml");
  DeviceBoard board(*source, log);
  const auto fault = Ending::failed(v1::FAILURE_REASON_GPU_FAULT, "Xid 13");
  board.record(source->devices(), fault);
  board.record(source->devices(), fault);
  board.record(source->devices(), Ending::succeeded());
  board.record(source->devices(), fault);
  board.record(source->devices(), fault);
  EXPECT_EQ(board.free_slots().size(), 1U);
  board.record(source->devices(), fault);
  EXPECT_TRUE(board.free_slots().empty());
}

// Three faults quarantine a device, failed self-tests keep it there, and a
// passed one heals it. A sound device that fails its test is quarantined too.
TEST_F(WorkerDevices, ASelfTestHealsAQuarantinedDevice) {
  const std::string ill = "[[device]]\nuuid = 'GPU-0'\nself_test = 'wrong sum'\n";
  const std::string sound = "[[device]]\nuuid = 'GPU-0'\n";
  describe(sound);
  const auto source = make_fake_devices(directory.path() / "devices.toml");
  DeviceBoard board(*source, log);
  constexpr Milliseconds kInterval{1'800'000}, kRetest{60'000};
  MonotonicTime now = MonotonicTime{} + std::chrono::hours(1);
  const auto test_all = [&] {
    const auto due = board.begin_tests(now, kInterval, kRetest);
    for (const auto& device : due) {
      EXPECT_TRUE(board.free_slots().empty()) << "it takes no attempt while it is tested";
      board.tested(device, source->self_test(device));
    }
    return due.size();
  };
  EXPECT_EQ(test_all(), 1U) << "at the start";
  EXPECT_EQ(test_all(), 0U);
  for (int i = 0; i < DeviceBoard::kFaultsToQuarantine; ++i)
    board.record(source->devices(), Ending::failed(v1::FAILURE_REASON_GPU_FAULT, "Xid 13"));
  EXPECT_EQ(board.describe()[0].state(), v1::DEVICE_STATE_QUARANTINED);
  describe(ill);
  now += kRetest;
  EXPECT_EQ(test_all(), 1U);
  EXPECT_EQ(board.describe()[0].state(), v1::DEVICE_STATE_QUARANTINED);
  EXPECT_TRUE(board.free_slots().empty());
  describe(sound);
  EXPECT_EQ(test_all(), 0U) << "a minute apart";
  now += kRetest;
  EXPECT_EQ(test_all(), 1U);
  EXPECT_EQ(board.describe()[0].state(), v1::DEVICE_STATE_READY);
  EXPECT_EQ(board.free_slots().size(), 1U) << "healed";

  describe(ill);
  now += kInterval;
  EXPECT_EQ(test_all(), 1U);
  EXPECT_EQ(board.describe()[0].state_reason(), "its self-test failed: wrong sum");
  describe(sound);
  now += kRetest;
  test_all();
  const auto busy = board.take({"GPU-0"});
  now += kInterval;
  EXPECT_EQ(test_all(), 0U) << "a device with an attempt is not tested";
  board.give_back(busy);
}

// The memory of an attempt is the most that it holds on one of its devices.
TEST_F(WorkerDevices, TellTheMemoryOfAnAttempt) {
  describe(
      "[[device]]\nuuid = 'GPU-0'\nattempt_gib = 20\n[[device]]\nuuid = 'GPU-1'\n"
      "attempt_gib = 30\n[[device]]\nuuid = 'GPU-2'\nattempt_gib = 60\n");
  const auto source = make_fake_devices(directory.path() / "devices.toml");
  DeviceBoard board(*source, log);
  const auto devices = board.take({"GPU-0", "GPU-1"});
  EXPECT_EQ(board.held_by(devices, 4242), std::int64_t{30} << 30);
}

// Each MIG instance is one device with memory of its own, and an engine sees its instance alone.
TEST_F(WorkerDevices, MigInstancesAreDevices) {
  describe(
      "[[device]]\nuuid = 'MIG-a'\nmemory_gib = 10\n[[device]]\nuuid = 'MIG-b'\n"
      "memory_gib = 40\n");
  const auto source = make_fake_devices(directory.path() / "devices.toml");
  DeviceBoard board(*source, log);
  const auto described = board.describe();
  ASSERT_EQ(described.size(), 2U);
  EXPECT_EQ(described[1].id(), "MIG-b");
  EXPECT_EQ(described[1].memory_bytes(), std::uint64_t{40} << 30);
  const auto taken = board.take({"MIG-b"});
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_TRUE(taken[0].mig);
  EXPECT_EQ(board.free_slots().size(), 1U);
  const LaunchPlan plan = launch_plan({}, taken, {}, {});
  EXPECT_EQ(
      std::count(plan.environment.begin(), plan.environment.end(), "CUDA_VISIBLE_DEVICES=MIG-b"),
      1);
}

TEST_F(WorkerDevices, ForeignMemoryIsNoticedBeforeAChildIsStarted) {
  describe("[[device]]\nuuid = 'GPU-0'\nmemory_gib = 80\nfree_gib = 20\nprocesses = [4242]\n");
  const auto source = make_fake_devices(directory.path() / "devices.toml");
  DeviceBoard board(*source, log);
  const auto devices = board.take({"GPU-0"});
  EXPECT_EQ(board.shortage(devices, std::int64_t{19} << 30), "");
  EXPECT_NE(board.shortage(devices, std::int64_t{20} << 30), "") << "512 MiB are kept free";
  EXPECT_EQ(board.describe()[0].state(), v1::DEVICE_STATE_BUSY_FOREIGN);
}

TEST_F(WorkerDevices, SayWhatIsWrongWithTheirFile) {
  describe("[[device]]\nuuid = 'GPU-0'\nmemroy_gib = 3\n");
  try {
    make_fake_devices(directory.path() / "devices.toml");
    FAIL() << "an unknown key was accepted";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("memroy_gib"), std::string::npos) << error.what();
  }
}

class WorkerConfiguration : public testing::Test {
 protected:
  void TearDown() override { unsetenv("QUASI_WORKER_SLOTS"); }
  std::string file(const std::string& text) {
    write(directory.path() / "worker.toml", text);
    return (directory.path() / "worker.toml").string();
  }
  std::string complaint(const std::string& text,
                        const std::map<std::string, std::string>& flags = {}) {
    try {
      load_config(file(text), flags);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  }
  TemporaryDirectory directory;
};

TEST_F(WorkerConfiguration, FlagsOverruleTheEnvironmentAndThatTheFile) {
  const std::string path = file("slots = 2\ndrain_timeout_s = 1.5\nisolate_network = false\n");
  EXPECT_EQ(load_config(path, {}).config.slots, 2);
  EXPECT_EQ(load_config(path, {}).config.drain_timeout_s, 1.5);
  EXPECT_FALSE(load_config(path, {}).config.isolate_network);
  setenv("QUASI_WORKER_SLOTS", "3", 1);
  EXPECT_EQ(load_config(path, {}).config.slots, 3);
  const auto loaded = load_config(path, {{"slots", "4"}});
  EXPECT_EQ(loaded.config.slots, 4);
  EXPECT_NE(loaded.print().find("slots = 4  # --slots"), std::string::npos) << loaded.print();
  EXPECT_NE(loaded.print().find("drain_timeout_s = 1.5  # " + path), std::string::npos);
  EXPECT_NE(loaded.print().find("pool = \"default\"  # built-in"), std::string::npos);
}

TEST_F(WorkerConfiguration, ARelativeStateDirectoryIsMadeAbsolute) {
  const auto here = std::filesystem::current_path();
  EXPECT_EQ(load_config(file(""), {{"state_directory", "w"}}).config.state_directory, here / "w");
  EXPECT_EQ(load_config(file(""), {{"state_directory", "./a/../w"}}).config.state_directory,
            here / "w");
}

TEST_F(WorkerConfiguration, SaysWhatIsWrongAndWhatWouldBeRight) {
  EXPECT_NE(complaint("slotz = 1").find("unknown key 'slotz' in "), std::string::npos);
  EXPECT_NE(complaint("slotz = 1").find("did you mean 'slots'?"), std::string::npos);
  EXPECT_NE(complaint("colour = 1").find("worker.toml; quasi-worker --help lists the keys"),
            std::string::npos)
      << complaint("colour = 1");
  EXPECT_NE(complaint("slots = 0").find("1 ... 256"), std::string::npos);
  EXPECT_NE(complaint("slots = 'many'").find("many"), std::string::npos);
  EXPECT_NE(complaint("slots = ").find("worker.toml:1: "), std::string::npos);
  EXPECT_NE(complaint("devices = 'gpu'").find("auto, nvml, none"), std::string::npos);
  for (const char* address : {"lab", "http://lab:7460", "lab:", ":7460", "lab:port", "unix:", ""})
    EXPECT_NE(complaint("server = '" + std::string(address) + "'").find("HOST:PORT or unix:/PATH"),
              std::string::npos)
        << address;
  for (const char* address :
       {"lab:7460", "[::1]:7460", "10.0.0.1:1", "unix:/run/quasi/server.sock"})
    EXPECT_EQ(complaint("ca = 'lab.pem'\nserver = '" + std::string(address) + "'"), "accepted")
        << address;
  EXPECT_EQ(complaint("server = '127.0.0.1:7460'"), "accepted");
  EXPECT_NE(complaint("server = 'lab:7460'").find("ca must name"), std::string::npos);
  EXPECT_NE(complaint("slots = { a = 1 }").find("slots must be a text, a number"),
            std::string::npos);
  EXPECT_EQ(complaint("environment = ['A', 'B']"), "accepted");
  EXPECT_NE(complaint("", {{"cancel_grace_s", "nan"}}).find("--cancel-grace-s"), std::string::npos);
}

TEST(WorkerIdentity, IsKeptAndHeldByOneDaemon) {
  const TemporaryDirectory directory;
  PosixFileSystem files;
  const std::string id = load_worker_id(files, directory.path());
  EXPECT_EQ(id.size(), 28U);
  EXPECT_EQ(load_worker_id(files, directory.path()), id);
  const StateLock lock(directory.path());
  EXPECT_THROW(StateLock(directory.path()), AlreadyRunning);
}

}  // namespace
}  // namespace quasi::test
