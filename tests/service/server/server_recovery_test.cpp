// Tests starts and garbage collections of a server whose disk is damaged or full of old files.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "server/service/writer.hpp"
#include "server/store/newest_mark.hpp"
#include "tests/service/support/queue_world.hpp"
#include "tests/support/temporary_directory.hpp"

namespace quasi::server::test {
namespace {

namespace fs = std::filesystem;

class Recovery : public testing::Test {
 protected:
  std::unique_ptr<QueueWorld> open(const fs::path& root) {
    return std::make_unique<QueueWorld>(ServerDisk{.files = system_files(),
                                                   .root = root.string(),
                                                   .database = (root / "quasi.db").string()},
                                        clock_, random_, QueueOptions{});
  }
  static void submit(QueueWorld& world, std::uint64_t number) {
    world.apply(
        SubmitJobs{.request_id = uuid_of(number), .body_sha256 = "b", .jobs = {simple_job("a")}});
  }

  FakeClock clock_;
  SeededRandom random_{1};
  quasi::test::TemporaryDirectory root_;
};

// SQLite takes a damaged frame for the end of its log and loses the acknowledged work after it. The
// server reports the loss and does not grant those fences again.
TEST_F(Recovery, ALogThatWasCutIsSaid) {
  const fs::path first = root_.path() / "first", second = root_.path() / "second";
  fs::create_directories(first);
  std::int64_t fence = 0;
  {
    const auto world = open(first);
    submit(*world, 1);
    world->engine.checkpoint(Database::Checkpoint::kTruncate);
    submit(*world, 2);
    const auto worker = simple_worker("w_1", 1, 2);
    world->apply(worker);
    fence = world->apply(simple_acquire(worker, 1, 1)).grants.at(0).attempt.fence;
    fs::copy(first, second, fs::copy_options::recursive);  // as a killed server leaves it
  }
  {
    std::fstream log(second / "quasi.db-wal", std::ios::in | std::ios::out | std::ios::binary);
    log.seekp(32 + 24 + 100);  // in the page of the first frame
    log.put('!');
  }
  testing::internal::CaptureStderr();
  const auto world = open(second);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("database_log_cut"), std::string::npos) << said;
  EXPECT_GE(world->engine.store().newest_fence(), fence);
}

TEST_F(Recovery, ASoundLogIsNotComplainedOf) {
  const fs::path first = root_.path() / "first", second = root_.path() / "second";
  fs::create_directories(first);
  {
    const auto world = open(first);
    for (std::uint64_t i = 0; i < 3; ++i) submit(*world, i);
    fs::copy(first, second, fs::copy_options::recursive);
  }
  testing::internal::CaptureStderr();
  const auto world = open(second);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(said.find("database_log_cut"), std::string::npos) << said;
}

// One collection removes everything that is due, in steps.
TEST_F(Recovery, ACollectionGoesOnUntilNothingIsDue) {
  const auto world = open(root_.path());
  submit(*world, 1);
  constexpr int kEvents = 1'500;
  world->run([&](WriteContext& write) {
    for (int i = 0; i < kEvents; ++i)
      write.store.append_event(
          {.job_id = 1, .time_ms = 5, .type = EventType::kProgress, .to = JobState::kQueued});
  });
  const auto count = [&] {
    Statement rows(world->engine.database(), "SELECT COUNT(*) FROM events WHERE type<>1");
    rows.step();
    return rows.integer(0);
  };
  ASSERT_EQ(count(), kEvents);
  WorkPool files(1);
  {
    Writer writer(world->engine, {.on_commit = [](const GroupOutcome&) {},
                                  .on_fatal = [](const StorageFatal&) { std::abort(); }});
    collect_garbage(writer, files, world->blobs, {.passing_events_ms = 1'000});
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    bool done = false;
    while (!done && std::chrono::steady_clock::now() < deadline) {
      std::promise<std::int64_t> left;
      writer.post({.body = [&](WriteContext&) { left.set_value(count()); },
                   .done = [](const std::exception_ptr&) {}});
      done = left.get_future().get() == 0;
      if (!done) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    EXPECT_TRUE(done) << "a step was taken for the whole";
    files.close();
    writer.close();
  }
}

// Staged bytes without a row may fill the disk, so they are removed before the first write.
TEST_F(Recovery, UnknownStagedBytesGoBeforeTheFirstWrite) {
  { const auto world = open(root_.path()); }
  std::ofstream(root_.path() / "staging" / "unknown") << "bytes";
  bool seen = false;
  LogStore logs(system_files(), root_.path());
  BlobStore blobs(system_files(), root_.path());
  const QueueEngine engine({.database_path = (root_.path() / "quasi.db").string(),
                            .vfs = {},
                            .mark = nullptr,
                            .before_writing =
                                [&](SqliteStore& store) {
                                  remove_unknown_staging(store, blobs);
                                  EXPECT_EQ(store.meta("epoch"), "1") << "this start wrote before";
                                  seen = true;
                                }},
                           logs, random_, {}, clock_);
  EXPECT_TRUE(seen);
  EXPECT_FALSE(fs::exists(root_.path() / "staging" / "unknown"));
}

}  // namespace
}  // namespace quasi::server::test
