// Tests starts and garbage collections of a server whose disk is damaged or full of old files.

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "proto/wire/limits.hpp"
#include "server/service/scrub.hpp"
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
// After a restart of the server a report may arrive before its worker registers. It does not bring
// an expired attempt back to a slot that another attempt occupies by now (I6).
TEST_F(Recovery, AReportBeforeTheRegistrationFindsTheSlotOccupied) {
  const auto worker = simple_worker("w_1", 1, 1);
  Grant expired, later;
  {
    const auto world = open(root_.path());
    world->apply(worker);
    submit(*world, 1);
    expired = world->apply(simple_acquire(worker, 1, 1)).grants.at(0);
    world->apply(StartAttempt{key_of(expired)});
    clock_.advance(QueueOptions{}.lease_ttl_ms + 1);
    world->run([](WriteContext& write) { write.queue.tick(write.now); });
    submit(*world, 2);
    later = world->apply(simple_acquire(worker, 2, 1)).grants.at(0);
  }
  const auto world = open(root_.path());
  EXPECT_THROW(world->apply(StartAttempt{key_of(expired)}), Refused);
  world->apply(ReleaseLease{.key = key_of(later), .message = ""});
  EXPECT_NO_THROW(world->apply(StartAttempt{key_of(expired)})) << "the slot is free again";
}

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
    collect_garbage(writer, files, world->blobs, world->logs, {.passing_events_ms = 1'000});
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

// A crash between the rename of an upload and its row leaves a file that no row knows. The next
// start frees it. Files with a row stay, and so do all files if the database lost its newest
// commits.
TEST_F(Recovery, AFileWithoutARowGoesAfterACrash) {
  const fs::path first = root_.path() / "first", cut = root_.path() / "cut";
  fs::create_directories(first);
  const std::string lost = wire::sha256_hex("no row");
  std::string known;
  {
    const auto world = open(first);
    known = world->put_blob("with a row");
    world->engine.checkpoint(Database::Checkpoint::kTruncate);
    const auto session = world->uploads.open(
        {.upload_id = "u", .digest = lost, .size_bytes = 6, .known = std::nullopt}, 1 << 20, this);
    session->append(0, "no row");
    world->uploads.publish(*session);  // The power is cut here.
    fs::copy(first, cut, fs::copy_options::recursive);
    NewestMark(system_files(), cut.string()).write({.event = 1'000, .fence = 1'000});
  }
  const auto world = open(first);
  EXPECT_FALSE(world->blobs.has(lost));
  EXPECT_TRUE(world->blobs.has(known));
  testing::internal::CaptureStderr();
  EXPECT_TRUE(open(cut)->blobs.has(lost));
  testing::internal::GetCapturedStderr();
}

// An upload may give a blob its final name again after the collection has unlinked it, and before
// the row goes. The upload is refused, and its file goes with the row.
TEST_F(Recovery, AnUploadThatMeetsACollectionLeavesNoFile) {
  const auto world = open(root_.path());
  const std::string digest = world->put_blob("bytes");
  world->run(
      [&](WriteContext& write) { write.store.set_blob_state(digest, BlobState::kDeleting); });
  world->blobs.remove(digest);
  const auto session = world->uploads.open(
      {.upload_id = "u", .digest = digest, .size_bytes = 5, .known = std::nullopt}, 1 << 20, this);
  session->append(0, "bytes");
  world->uploads.publish(*session);
  EXPECT_TRUE(world->blobs.has(digest));
  world->run([&](WriteContext& write) {
    delete_marked_blobs(write.store, world->blobs, {digest});
    EXPECT_FALSE(write.store.blob_state(digest));
  });
  EXPECT_FALSE(world->blobs.has(digest));
}

// An upload whose file cannot be opened takes neither a place nor free space from later ones.
TEST_F(Recovery, AnUploadThatCannotBeOpenedGivesItsPlaceBack) {
  const auto world = open(root_.path());
  const std::string digest = wire::sha256_hex("bytes");
  const auto open_upload = [&](const std::string& id) {
    return world->uploads.open(
        {.upload_id = id, .digest = digest, .size_bytes = 600, .known = std::nullopt}, 1'000, this);
  };
  fs::remove_all(root_.path() / "staging");
  for (std::uint64_t i = 0; i < limits::kUploads + 2; ++i)
    EXPECT_THROW(open_upload("u" + std::to_string(i)), FileError);
  fs::create_directory(root_.path() / "staging");
  EXPECT_NO_THROW(open_upload("after"));
}

// A full disk may refuse the reading that rebuilds the state in memory, too. The server then ends
// by its own rule, with a message and an exit status.
TEST_F(Recovery, AnErrorWhileTheMemoryIsRebuiltIsAStorageFailure) {
  const auto world = open(root_.path());
  submit(*world, 1);
  const auto refuse_all = [](void*, int, const char*, const char*, const char*, const char*) {
    return SQLITE_DENY;
  };
  WriteTask task{.body =
                     [&](WriteContext&) {
                       sqlite3_set_authorizer(world->engine.database().handle(), refuse_all,
                                              nullptr);
                       throw FileError(ENOSPC, "the log");
                     },
                 .done = [](const std::exception_ptr&) {}};
  EXPECT_THROW(world->engine.run_group({&task, 1}), StorageFatal);
  sqlite3_set_authorizer(world->engine.database().handle(), nullptr, nullptr);
}

using Answers = std::array<std::string, 3>;

// Three changes of one group; the middle one runs without a savepoint.
struct GroupOfThree {
  Answers answers;

  GroupOutcome run(QueueWorld& world, std::function<void(WriteContext&)> middle) {
    const auto set = [](const char* key) {
      return [key](WriteContext& write) { write.store.set_meta(key, "set"); };
    };
    std::vector<WriteTask> tasks = {
        {.body = set("first"), .done = answer(0)},
        {.body = std::move(middle), .done = answer(1), .checks_first = true},
        {.body = set("last"), .done = answer(2)}};
    return world.engine.run_group(tasks);
  }
  std::function<void(std::exception_ptr)> answer(std::size_t i) {
    return [this, i](const std::exception_ptr& error) {
      answers[i] = "done";
      try {
        if (error) std::rethrow_exception(error);
      } catch (const Refused& refused) {
        answers[i] = refused.reason;
      }
    };
  }
};

TEST_F(Recovery, AChangeThatIsRefusedBeforeItsFirstWriteLeavesTheOthersAlone) {
  const auto world = open(root_.path());
  GroupOfThree group;
  group.run(*world, [](WriteContext&) { throw Refused(Refusal::kNotFound, "JOB", "none"); });
  EXPECT_EQ(group.answers, Answers({"done", "JOB", "done"}));
  EXPECT_EQ(world->engine.store().meta("first"), "set");
  EXPECT_EQ(world->engine.store().meta("last"), "set");
}

// Nothing of a change that broke its promise may be committed, so the others try again.
TEST_F(Recovery, AChangeThatFailsAfterAWriteWithoutSavepointUndoesItsGroup) {
  const auto world = open(root_.path());
  GroupOfThree group;
  const GroupOutcome outcome = group.run(*world, [](WriteContext& write) {
    write.store.set_meta("half", "set");
    throw Refused(Refusal::kNotFound, "JOB", "none");
  });
  EXPECT_FALSE(outcome.wrote);
  EXPECT_EQ(group.answers, Answers({"SERVER_BUSY", "JOB", "SERVER_BUSY"}));
  for (const char* key : {"first", "half", "last"})
    EXPECT_EQ(world->engine.store().meta(key), "") << key;
  group.run(*world, [](WriteContext&) {});
  EXPECT_EQ(group.answers, Answers({"done", "done", "done"}));
  EXPECT_EQ(world->engine.store().meta("last"), "set");
}

// Two texts at one address are two statements, and one text at two addresses is one statement.
TEST(StatementCache, FindsAStatementByItsText) {
  Database database(":memory:", Database::Mode::kWriter);
  StatementCache statements(database);
  const auto number = [&](const std::string& text) {
    Rows rows(statements.get(text).bind());
    return rows.next() ? rows->integer(0) : -1;
  };
  std::string text = "SELECT 1";
  EXPECT_EQ(number(text), 1);
  text.back() = '2';
  EXPECT_EQ(number(text), 2);
  EXPECT_EQ(&statements.get(text), &statements.get(std::string("SELECT 2")));
}

// A reader of damaged bytes may be slower than the upload that heals the blob.
TEST_F(Recovery, ABlobThatWasHealedMeanwhileIsNotCondemned) {
  const auto world = open(root_.path());
  const std::string digest = world->put_blob("bytes");
  SqliteStore& store = world->engine.store();
  const std::int64_t read_at = store.blob_created_ms(digest).value();
  clock_.advance(5);
  EXPECT_EQ(world->put_blob("bytes"), digest);
  world->run([&](WriteContext& write) {
    EXPECT_FALSE(condemn_blob(write.store, world->blobs, digest, read_at));
  });
  EXPECT_EQ(store.blob_state(digest), BlobState::kPresent);
  EXPECT_TRUE(world->blobs.has(digest));
  world->run([&](WriteContext& write) {
    EXPECT_TRUE(condemn_blob(write.store, world->blobs, digest, read_at + 5));
  });
  EXPECT_EQ(store.blob_state(digest), BlobState::kCorrupt);
  EXPECT_FALSE(world->blobs.has(digest));
}

}  // namespace
}  // namespace quasi::server::test
