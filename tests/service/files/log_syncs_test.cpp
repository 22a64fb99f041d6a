// Counts the syncs of logs. Many attempts that write a line each second must not cost a sync each,
// because all of them would wait in the writer's transaction.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <iostream>
#include <thread>

#include "server/service/readers.hpp"
#include "server/service/writer.hpp"
#include "tests/service/support/queue_world.hpp"
#include "tests/service/support/sync_trace.hpp"
#include "tests/support/temporary_directory.hpp"

namespace quasi::server::test {
namespace {

class LogSyncs : public testing::Test {
 protected:
  static constexpr std::size_t kAttempts = 20;

  LogSyncs()
      : world_({.files = system_files(),
                .root = root_.path(),
                .database = (root_.path() / "quasi.db").string()},
               clock_, random_, {}) {
    const auto worker = simple_worker("w_1", 1, kAttempts);
    world_.apply(worker);
    for (std::uint64_t i = 0; i < kAttempts; ++i)
      world_.apply(SubmitJobs{
          .request_id = uuid_of(i), .body_sha256 = "b", .jobs = {simple_job(std::to_string(i))}});
    grants_ = world_.apply(simple_acquire(worker, 100, kAttempts)).grants;
    for (const Grant& grant : grants_) world_.apply(StartAttempt{key_of(grant)});
  }

  /// Each attempt appends one line, all in one group of the writer.
  void append_lines(const std::string& line) {
    std::vector<WriteTask> tasks;
    for (const Grant& grant : grants_)
      tasks.push_back({.body =
                           [this, &grant, line](WriteContext& write) {
                             write.queue.apply(
                                 AppendLog{.key = key_of(grant), .offset = appended_, .data = line},
                                 write.now);
                           },
                       .done = [](const std::exception_ptr& error) { EXPECT_FALSE(error); }});
    world_.engine.run_group(tasks);
    appended_ += static_cast<std::int64_t>(line.size());
  }
  static std::size_t syncs(const quasi::test::SyncTrace& trace) {
    std::size_t count = 0;
    for (const auto& call : trace.calls())
      count += call.kind == quasi::test::SyncTrace::Call::Kind::kSync ? 1 : 0;
    return count;
  }

  quasi::test::TemporaryDirectory root_;
  FakeClock clock_;
  SeededRandom random_{1};
  QueueWorld world_;
  std::vector<Grant> grants_;
  std::int64_t appended_ = 0;
};

TEST_F(LogSyncs, AGroupOfAppendsIsOneSync) {
  ASSERT_EQ(grants_.size(), kAttempts);
  append_lines("first\n");
  constexpr std::size_t kGroups = 10;
  const quasi::test::SyncTrace trace;
  for (std::size_t i = 0; i < kGroups; ++i) append_lines("a line\n");
  std::cout << "syncs of " << kGroups << " groups of " << kAttempts << " appends: " << syncs(trace)
            << '\n';
  EXPECT_LE(syncs(trace), kGroups);
}

// The files of logs are synced by the threads for files. The writer goes on with other commands.
TEST_F(LogSyncs, TheWriterSyncsNoFileOfALog) {
  append_lines(std::string(300 << 10, 'x'));
  std::atomic<bool> folding{false};
  WorkPool files(1);
  std::promise<std::thread::id> writers_thread;
  std::vector<quasi::test::SyncTrace::Call> calls;
  {
    Writer writer(world_.engine, {.on_commit = [](const GroupOutcome&) {},
                                  .on_fatal = [](const StorageFatal&) { std::abort(); }});
    writer.post(
        {.body = [&](WriteContext&) { writers_thread.set_value(std::this_thread::get_id()); },
         .done = [](const std::exception_ptr& error) { EXPECT_FALSE(error); }});
    const quasi::test::SyncTrace trace;
    fold_logs(writer, files, world_.logs, folding);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (folding && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_FALSE(folding);
    files.close();
    writer.close();
    calls = trace.calls();
  }
  const std::thread::id writers = writers_thread.get_future().get();
  std::size_t of_logs = 0;
  for (const auto& call : calls) {
    if (call.path.find("/logs/") == std::string::npos) continue;
    ++of_logs;
    EXPECT_NE(call.thread, writers) << call.path;
  }
  EXPECT_GT(of_logs, 0U);
}

// A log is moved into its file when it is long or finished. Every byte is read from the right place
// before, between and after.
TEST_F(LogSyncs, AFoldedLogReadsAsBefore) {
  std::string whole;
  const auto log = [&](std::int64_t offset) {
    const AttemptRow attempt = *world_.engine.store().find_attempt(grants_[0].attempt.uid);
    std::string bytes;
    world_.run([&](WriteContext& write) {
      bytes = write.queue.read_log(attempt, offset, attempt.log_bytes - offset);
    });
    return bytes;
  };
  const auto fold = [&](std::int64_t least) {
    std::vector<SqliteStore::LogToFold> logs;
    world_.run([&](WriteContext& write) { logs = write.store.logs_to_fold(least, 100); });
    for (const auto& each : logs) world_.logs.write(each.uid, each.folded_bytes, each.data);
    world_.run([&](WriteContext& write) { forget_folded(write.store, logs); });
    return logs.size();
  };
  for (int i = 0; i < 30; ++i) {
    append_lines("line " + std::to_string(i) + "\n");
    whole += "line " + std::to_string(i) + "\n";
    if (i == 9) {
      EXPECT_EQ(fold(1), kAttempts);
    }
    if (i == 12) {
      EXPECT_EQ(fold(1'000), 0U) << "short and not finished";
    }
    for (const std::int64_t offset : {0, 3, 65, 72}) {
      const auto at = static_cast<std::size_t>(offset);
      if (at < whole.size()) {
        ASSERT_EQ(log(offset), whole.substr(at));
      }
    }
  }
  // A repeated append that begins in the file and ends in the database is recognised.
  const auto again = [&](const std::string& bytes) {
    return world_.apply(AppendLog{.key = key_of(grants_[0]), .offset = 0, .data = bytes}).length;
  };
  EXPECT_EQ(again(whole), appended_);
  std::string other = whole;
  other[68] = '?';
  EXPECT_THROW(again(other), Refused);
}

}  // namespace
}  // namespace quasi::server::test
