// Tests backups of a store in use, and the data directories that are restored from them: what they
// hold, what they refuse, and that nothing of the lost store acts on the restored one.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "server/api/local_address.hpp"
#include "server/backup/backup.hpp"
#include "server/backup/backup_folder.hpp"
#include "server/backup/restore.hpp"
#include "server/backup/store_check.hpp"
#include "server/backup/sums.hpp"
#include "server/store/backup/files_lock.hpp"
#include "server/store/schema.hpp"
#include "tests/service/server/migrations/golden_database.hpp"
#include "tests/service/support/queue_world.hpp"
#include "tests/support/temporary_directory.hpp"

namespace quasi::server::test {
namespace {

namespace fs = std::filesystem;

/// Jobs, attempts, events, results and stored answers of a store, as one text.
std::string history_of(const std::string& data) {
  Database database(data + "/quasi.db", Database::Mode::kReader);
  return rows_of(database, "SELECT uid, name, state, job_seq, hex(spec) FROM jobs", 5) +
         rows_of(database, "SELECT uid, job_id, number, fence, outcome FROM attempts", 5) +
         rows_of(database, "SELECT seq, job_id, job_seq, type, to_state, fence FROM events", 6) +
         rows_of(database, "SELECT request_id, body_sha256, response FROM requests", 3) +
         rows_of(database, "SELECT * FROM artifacts", 5) +
         rows_of(database, "SELECT digest, size_bytes, state FROM blobs", 3);
}

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

void flip_a_byte(const std::string& path) {
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  std::string bytes = text_of(path);
  bytes[bytes.size() / 2] ^= 1;
  std::ofstream(path) << bytes;
}

class Backup : public testing::Test {
 protected:
  Backup() {
    fs::create_directories(data_);
    world_ = open(data_);
  }
  std::unique_ptr<QueueWorld> open(const std::string& data) {
    return std::make_unique<QueueWorld>(
        ServerDisk{.files = system_files(), .root = data, .database = data + "/quasi.db"}, clock_,
        random_, QueueOptions{.requeue_delay_ms = 0});
  }
  std::string submit(std::uint64_t number) {
    return world_
        ->apply(SubmitJobs{.request_id = uuid_of(number),
                           .body_sha256 = "b",
                           .jobs = {simple_job("job " + std::to_string(number))}})
        .uids.at(0);
  }
  /// A job that ended with a result, one that runs with a log in its file, and one that waits.
  void tell_a_story() {
    for (std::uint64_t i = 1; i <= 3; ++i) submit(i);
    world_->apply(worker_);
    const auto grants = world_->apply(simple_acquire(worker_, 1, 2)).grants;
    for (const Grant& grant : grants) world_->apply(StartAttempt{.key = key_of(grant)});
    result_ = world_->put_blob("the result");
    world_->apply(CompleteAttempt{.key = key_of(grants.at(0)),
                                  .artifacts = {{.name = "result.h5",
                                                 .digest = result_,
                                                 .size_bytes = 10,
                                                 .media_type = "application/x-hdf5"}}});
    running_ = grants.at(1);
    world_->apply(AppendLog{.key = key_of(running_), .offset = 0, .data = log_});
    world_->run([&](WriteContext& write) {
      for (const auto& log : write.store.logs_to_fold(0, 16)) {
        world_->logs.write(log.uid, log.folded_bytes, log.data);
        forget_folded(write.store, {log});
      }
    });
  }
  BackupReport back_up(std::size_t keep = 0, bool copies = false) {
    return server::back_up(
        {.data_directory = data_, .folder = folder_, .copies = copies, .keep = keep});
  }
  RestoreReport restore(bool without_damaged = false) {
    return server::restore(
        {.source = folder_, .data_directory = restored_, .without_damaged = without_damaged});
  }

  FakeClock clock_;
  SeededRandom random_{1};
  quasi::test::TemporaryDirectory root_;
  const std::string data_ = (root_.path() / "data").string();
  const std::string folder_ = (root_.path() / "backups").string();
  const std::string restored_ = (root_.path() / "restored").string();
  std::unique_ptr<QueueWorld> world_;
  const RegisterWorker worker_ = simple_worker("w_1", 1, 2);
  std::string result_;
  Grant running_;
  const std::string log_ = "step 1\nstep 2\n";
};

TEST_F(Backup, HoldsTheStoreOfOneMoment) {
  tell_a_story();
  const std::string before = history_of(data_);
  const BackupReport report = back_up();
  EXPECT_EQ(report.jobs, 3);
  EXPECT_EQ(report.new_blobs, 1);
  EXPECT_TRUE(report.damaged.empty());
  submit(4);  // after the backup
  EXPECT_EQ(history_of(report.path), before);
  EXPECT_EQ(text_of(report.path + "/logs/" +
                    running_.attempt.uid.substr(running_.attempt.uid.size() - 2) + "/" +
                    running_.attempt.uid + ".log"),
            log_);
  // Another program verifies the backup, too.
  EXPECT_EQ(
      std::system(("cd '" + report.path + "' && sha256sum --quiet --check SHA256SUMS").c_str()), 0);
  const Manifest manifest = BackupFolder(folder_).manifest_of(fs::path(report.path).filename());
  EXPECT_EQ(manifest.facts.jobs, 3);
  EXPECT_EQ(manifest.facts.open_attempts, 1);
  EXPECT_EQ(manifest.facts.newest_fence, 2);
}

TEST_F(Backup, RestoresEverythingAndLetsTheJobsGoOn) {
  tell_a_story();
  back_up();
  const std::string lost = submit(4);
  const std::int64_t token_event = world_->engine.store().newest_event();
  const std::string token_line = world_->engine.event_lines().current();
  const std::int64_t lost_fence =
      world_->apply(simple_acquire(worker_, 2, 1)).grants.at(0).attempt.fence;
  world_.reset();
  fs::remove_all(data_);

  const RestoreReport report = restore();
  EXPECT_EQ(report.jobs, 3);
  EXPECT_EQ(report.unfinished_jobs, 2);
  EXPECT_EQ(report.released_attempts, 1);
  EXPECT_EQ(report.blobs, 1);
  EXPECT_TRUE(check_store(restored_, true).faults.empty());
  const auto world = open(restored_);
  EXPECT_FALSE(world->engine.store().find_job(Scope::everything(), lost));
  EXPECT_EQ(world->logs.read(running_.attempt.uid, 0, 100), log_);

  // The worker that ran a job of the backup has lost it, whatever it says.
  EXPECT_THROW(world->apply(CompleteAttempt{.key = key_of(running_)}), Refused);
  RegisterWorker again = worker_;
  again.salvage = {key_of(running_)};
  EXPECT_EQ(world->apply(again).salvage.at(0), Directive::kFenced);
  // Both waiting jobs are granted, under fences that no worker of the lost store can hold.
  const auto grants = world->apply(simple_acquire(worker_, 3, 2)).grants;
  ASSERT_EQ(grants.size(), 2u);
  EXPECT_EQ(grants.at(0).job.uid, running_.job.uid);
  EXPECT_EQ(grants.at(0).job.attempts, 1) << "the attempt of the lost store does not count";
  for (const Grant& grant : grants) EXPECT_GT(grant.attempt.fence, lost_fence + (1LL << 32) - 1);
  // Resume tokens: those of events that the backup holds go on, later ones are refused (I9).
  EXPECT_TRUE(world->engine.event_lines().hold(token_line, 1));
  EXPECT_FALSE(world->engine.event_lines().hold(token_line, token_event));
}

TEST_F(Backup, FencesOfRestorationsNeverMeet) {
  constexpr std::int64_t kNewest = 12'345, kNow_ms = 1'790'000'000'000;
  const std::int64_t first = fence_after_restore(kNewest, kNow_ms);
  EXPECT_GE(first, kNewest + (std::int64_t{1} << 32));
  // Another restoration of the same backup a second later, after four million grants of the first.
  EXPECT_GE(fence_after_restore(kNewest, kNow_ms + 1'000), first + 4'194'304);
  EXPECT_GE(fence_after_restore(first + 7, kNow_ms), first + 7 + (std::int64_t{1} << 32));
  // A clock that stands at 1970 keeps the distance alone.
  EXPECT_EQ(fence_after_restore(kNewest, 0), kNewest + (std::int64_t{1} << 32));
  // Workers send fences below 2⁵³, also in the year 2080.
  EXPECT_LT(fence_after_restore(kNewest, 3'471'292'800'000), std::int64_t{1} << 53);
}

TEST_F(Backup, ASecondOneTakesWhatIsNew) {
  tell_a_story();
  const BackupReport first = back_up();
  const std::string more = world_->put_blob("another file");
  const BackupReport second = back_up();
  EXPECT_EQ(first.new_blobs, 1);
  EXPECT_EQ(second.blobs, 2);
  EXPECT_EQ(second.new_blobs, 1);
  EXPECT_EQ(second.new_bytes, 12);
  const std::string uid = running_.attempt.uid;
  const std::string log = "/logs/" + uid.substr(uid.size() - 2) + "/" + uid + ".log";
  EXPECT_EQ(fs::hard_link_count(second.path + log), 2u) << "the log has not grown";
  EXPECT_EQ(BackupFolder(folder_).names().size(), 2u);

  // The file of the older backup alone goes with it.
  world_->run([&](WriteContext& write) {
    write.store.set_blob_state(more, BlobState::kDeleting);
    write.store.delete_blob(more);
  });
  EXPECT_EQ(back_up(2).removed, 1);
  EXPECT_TRUE(fs::exists(BackupFolder(folder_).blob_path(more)));
  EXPECT_EQ(back_up(1).removed, 2);
  EXPECT_FALSE(fs::exists(BackupFolder(folder_).blob_path(more)));
  EXPECT_TRUE(fs::exists(BackupFolder(folder_).blob_path(result_)));
  EXPECT_EQ(restore().jobs, 3);
}

TEST_F(Backup, CopiesShareNoBytesWithTheStore) {
  tell_a_story();
  back_up(0, true);
  const std::string copy = BackupFolder(folder_).blob_path(result_);
  EXPECT_EQ(fs::hard_link_count(copy), 1u);
  EXPECT_EQ(text_of(copy), "the result");
}

TEST_F(Backup, NamesWhatTheStoreHasLost) {
  tell_a_story();
  flip_a_byte(world_->blobs.path_of(result_));
  const BackupReport report = back_up();
  EXPECT_EQ(report.damaged, std::vector<std::string>{result_});
  // The rest is restored, and the damaged file is never served.
  EXPECT_EQ(restore().blobs, 0);
  EXPECT_EQ(open(restored_)->engine.store().blob_state(result_), BlobState::kCorrupt);
}

TEST_F(Backup, ADamagedOneIsRefusedByItsFile) {
  tell_a_story();
  const BackupReport report = back_up(0, true);
  const auto message = [&] {
    try {
      restore();
    } catch (const BadConfiguration& error) {
      return std::string(error.what());
    }
    return std::string("it was restored");
  };
  flip_a_byte(BackupFolder(folder_).blob_path(result_));
  EXPECT_NE(message().find(result_), std::string::npos) << message();
  EXPECT_FALSE(fs::exists(restored_));
  EXPECT_FALSE(fs::exists(restored_ + ".restoring"));
  EXPECT_EQ(restore(true).damaged, std::vector<std::string>{result_});
  EXPECT_EQ(open(restored_)->engine.store().blob_state(result_), BlobState::kCorrupt);
  fs::remove_all(restored_);
  flip_a_byte(report.path + "/quasi.db");
  EXPECT_NE(message().find("quasi.db is missing or damaged"), std::string::npos) << message();
  flip_a_byte(report.path + "/SHA256SUMS");
  EXPECT_NE(message().find("SHA256SUMS"), std::string::npos) << message();
}

TEST_F(Backup, NothingIsOverwrittenAndNoOtherVersionTaken) {
  tell_a_story();
  const BackupReport report = back_up();
  fs::create_directories(restored_);
  EXPECT_EQ(restore().jobs, 3) << "an empty directory may be there";
  EXPECT_THROW(restore(), BadConfiguration);
  fs::remove_all(restored_);
  fs::create_directories(restored_ + ".restoring");
  EXPECT_THROW(restore(), BadConfiguration);
  fs::remove_all(restored_ + ".restoring");
  std::string json = text_of(report.path + "/BACKUP.json");
  json.replace(json.find("\"schema\": ") + 10, 2, "99");
  std::ofstream(report.path + "/BACKUP.json") << json;
  EXPECT_THROW(restore(), BadConfiguration);
  std::ofstream(report.path + "/BACKUP.json") << "{}";
  EXPECT_THROW(restore(), BadConfiguration);
  EXPECT_THROW(server::back_up({.data_directory = data_, .folder = data_ + "/backups"}),
               BadConfiguration);
  EXPECT_THROW(server::back_up({.data_directory = restored_, .folder = folder_}), BadConfiguration);
}

// A name in SHA256SUMS that leads out of the directory is refused before anything is written.
TEST_F(Backup, SumsNameFilesBelowTheirFolder) {
  const std::string digest(64, 'a');
  EXPECT_EQ(parse_sums(digest + "  tls/ca.pem\n").at("tls/ca.pem"), digest);
  for (const std::string& name :
       {std::string("../x"), std::string("/etc/x"), std::string("a/../b")})
    EXPECT_THROW(parse_sums(digest + "  " + name + "\n"), BadConfiguration) << name;
  EXPECT_THROW(parse_sums("short  x\n"), BadConfiguration);
}

// An interrupted run leaves the earlier backups, and the next run removes its rest.
TEST_F(Backup, WhatARunLeftThatWasKilledGoes) {
  tell_a_story();
  back_up();
  fs::create_directories(folder_ + "/2026-01-01T00-00-00Z.part/logs");
  EXPECT_EQ(BackupFolder(folder_).names().size(), 1u);
  back_up();
  EXPECT_FALSE(fs::exists(folder_ + "/2026-01-01T00-00-00Z.part"));
}

TEST_F(Backup, TheServerRemovesNoFileWhileOneIsRead) {
  auto reading = FilesLock::for_reading(data_);
  EXPECT_NE(FilesLock::for_reading(data_), nullptr) << "several may read";
  EXPECT_EQ(FilesLock::for_removal(data_), nullptr);
  reading.reset();
  const auto removing = FilesLock::for_removal(data_);
  EXPECT_NE(removing, nullptr);
  EXPECT_EQ(FilesLock::for_removal(data_), nullptr);

  const std::string digest = world_->put_blob("garbage");
  world_->clock.advance(1'000'000);
  const auto choose = [&](bool files_stay) {
    Garbage found;
    found.files_stay = files_stay;
    world_->run([&](WriteContext& write) { choose_garbage(write, {.blob_grace_ms = 0}, found); });
    return found.blobs;
  };
  EXPECT_TRUE(choose(true).empty());
  EXPECT_EQ(choose(false), std::vector<std::string>{digest});
}

// A long copy of the database holds one moment of it. The writer must not wait for its end.
TEST_F(Backup, ALongReaderHoldsUpNoCheckpoint) {
  submit(1);
  Database reader(data_ + "/quasi.db", Database::Mode::kReader);
  reader.execute("BEGIN");
  rows_of(reader, "SELECT count(*) FROM jobs", 1);
  submit(2);
  const auto begun = std::chrono::steady_clock::now();
  world_->engine.checkpoint(Database::Checkpoint::kTruncate);
  // Before, it waited for the reader for the five seconds of a lock.
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(4));
  EXPECT_EQ(rows_of(reader, "SELECT count(*) FROM jobs", 1), "1|\n");
}

/// A backup as the program of an older version with this database made it.
void make_old_backup(const std::string& folder, std::int64_t version) {
  const std::string backup = folder + "/2026-01-01T00-00-00Z";
  fs::create_directories(backup);
  fs::create_directories(folder + "/blobs/sha256");
  write_golden(version, backup + "/quasi.db");
  Manifest manifest{.made = "2026-01-01T00:00:00Z", .version = "0.1.0"};
  {
    Database database(backup + "/quasi.db", Database::Mode::kWriter);
    // The golden databases come without the files that they name.
    database.execute("UPDATE blobs SET state = 3; PRAGMA journal_mode = DELETE");
    manifest.facts = store_facts(database);
  }
  const Sums sums{{"quasi.db", hash_file(system_files(), backup + "/quasi.db").sha256}};
  write_text(system_files(), backup + "/SHA256SUMS", to_text(sums));
  manifest.sums_sha256 = wire::sha256_hex(to_text(sums));
  write_text(system_files(), backup + "/BACKUP.json", to_json(manifest));
}

TEST_F(Backup, OfEveryReleasedSchemaIsRestored) {
  for (const std::int64_t version : {1, 12}) {
    SCOPED_TRACE(version);
    const std::string folder = folder_ + std::to_string(version);
    const std::string target = restored_ + std::to_string(version);
    make_old_backup(folder, version);
    const RestoreReport report = server::restore({.source = folder, .data_directory = target});
    EXPECT_GT(report.jobs, 0);
    Database database(target + "/quasi.db", Database::Mode::kReader);
    EXPECT_EQ(version_of(database), schema_version());
    EXPECT_EQ(schema_of(database), schema_of_version(schema_version()));
    EXPECT_EQ(rows_of(database, "SELECT count(*) FROM attempts WHERE outcome = 0", 1), "0|\n");
    EXPECT_FALSE(fs::exists(target + "/quasi.db.backup-v" + std::to_string(version)));
    for (const std::string& fault : check_store(target, true).faults)
      EXPECT_TRUE(fault.starts_with("the log of attempt")) << fault;
  }
}

}  // namespace
}  // namespace quasi::server::test
