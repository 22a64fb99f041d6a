// The power is cut before every change that two clients and their server make to one disk, under
// three models of the bytes that survive. Afterwards each client repeats the submissions of its
// journal. Every submission that was recorded takes effect once, for its owner alone (I1, I7, I15).

#include <gtest/gtest.h>

#include <map>

#include "client/failure.hpp"
#include "client/session/state.hpp"
#include "tests/service/files/journal_disk.hpp"
#include "tests/service/files/power_cut_sweep.hpp"
#include "tests/service/support/queue_world.hpp"
#include "tests/support/temporary_directory.hpp"

namespace quasi::server::test {
namespace {

namespace fs = std::filesystem;
using client::PendingSubmission;
using client::State;
using Loss = PowerCutDisk::Loss;

constexpr int kOwners = 2, kSubmissions = 4;  ///< of each owner

/// Holds two clients, each with a state directory of its own, and their server.
class Submitters {
 public:
  Submitters(PowerCutDisk& disk, const fs::path& folder)
      : disk_(disk), folder_(folder), journals_(disk, folder, kRoot + "/clients") {
    disk_.make_directory(kRoot + "/clients");
    disk_.sync_directory(kRoot);
  }

  void open() {
    world_ = std::make_unique<QueueWorld>(ServerDisk{.files = disk_,
                                                     .root = kRoot,
                                                     .database = kRoot + "/quasi.db",
                                                     .vfs = disk_.vfs_name()},
                                          clock_, random_, QueueOptions{});
  }
  void close() { world_.reset(); }
  void restore() { journals_.restore(); }

  /// Submits jobs for both owners in turn, as `quasi submit` does.
  void live() {
    for (int i = 0; i < kSubmissions; ++i)
      for (int owner = 1; owner <= kOwners; ++owner) {
        const PendingSubmission submission = submission_of(owner, i);
        state_of(owner).add_pending(submission);
        recorded_[submission.request_id] = owner;
        send(owner, submission);
        acknowledged_[owner] = uids_.at(submission.request_id);
      }
  }

  /// Repeats what the journals hold, as `quasi submit --resume` does.
  void resume() {
    for (int owner = 1; owner <= kOwners; ++owner) {
      const std::vector<std::string> last = state_of(owner).last();
      for (const PendingSubmission& entry : state_of(owner).pending()) send(owner, entry);
      EXPECT_EQ(state_of(owner).pending_count(), 0U);
      // The ids of the newest submission that was answered were written before it was told.
      if (acknowledged_.contains(owner)) {
        ASSERT_EQ(last.size(), 1U) << "the ids of an answer are gone";
      }
    }
  }

  /// Every recorded submission has one job, which its owner sees and the other does not.
  void check() {
    SqliteStore& store = world_->engine.store();
    std::map<std::string, int> jobs_of_name;
    Statement rows(world_->engine.database(), "SELECT name FROM jobs");
    while (rows.step()) ++jobs_of_name[rows.text(0)];
    for (const auto& [name, count] : jobs_of_name)
      EXPECT_EQ(count, 1) << "I7: the submission " << name << " took effect twice";
    for (const auto& [request, owner] : recorded_) {
      ASSERT_TRUE(uids_.contains(request)) << "I1: a recorded submission is lost";
      EXPECT_TRUE(store.find_job(scope_of(owner), uids_[request])) << "I1";
      EXPECT_FALSE(store.find_job(scope_of(kOwners + 1 - owner), uids_[request])) << "I15";
    }
    for (const auto& [owner, uid] : acknowledged_)
      EXPECT_TRUE(store.find_job(scope_of(owner), uid)) << "I1: an acknowledged job is gone";
  }

  static inline const std::string kRoot = "/data";

 private:
  static Scope scope_of(int owner) { return {.principal_id = owner}; }
  State state_of(int owner) const {
    return State(folder_ / ("owner" + std::to_string(owner)) / "state");
  }
  static PendingSubmission submission_of(int owner, int number) {
    const std::string name = std::to_string(owner) + "-" + std::to_string(number);
    return {.request_id = uuid_of(static_cast<std::uint64_t>(100 * owner + number)),
            .created_ms = number,
            .address = "unix:/s",
            .store_id = "store",
            .request_json = "{\"name\":\"" + name + "\"}"};
  }
  /// Sends a submission, notes its ids and removes it from the journal, in the order of
  /// client/commands/submit.cpp. The job has the name that the journal recorded.
  void send(int owner, const PendingSubmission& submission) {
    const std::string name = submission.request_json.substr(9, 3);
    const auto submitted = world_->apply(SubmitJobs{.scope = scope_of(owner),
                                                    .request_id = submission.request_id,
                                                    .body_sha256 = submission.request_json,
                                                    .jobs = {simple_job(name)}});
    const auto known = uids_.try_emplace(submission.request_id, submitted.uids.at(0)).first;
    EXPECT_EQ(known->second, submitted.uids.at(0)) << "I7: another answer to the same request";
    state_of(owner).remember_last(submitted.uids);
    state_of(owner).remove_pending(submission.request_id);
  }

  PowerCutDisk& disk_;
  fs::path folder_;
  JournalDisk journals_;
  FakeClock clock_;
  SeededRandom random_{7};
  std::unique_ptr<QueueWorld> world_;
  std::map<std::string, int> recorded_;      ///< request → owner
  std::map<std::string, std::string> uids_;  ///< request → answer that a client got
  std::map<int, std::string> acknowledged_;  ///< owner → newest job that their command reported
};

/// Cuts the power before change `point`, restarts and checks. @return false if the story ended
/// before the cut
bool live_and_die(std::int64_t point, Loss loss) {
  const quasi::test::TemporaryDirectory folder;
  PowerCutDisk disk(Submitters::kRoot);
  Submitters submitters(disk, fs::canonical(folder.path()));
  disk.cut_at(point);
  bool died = true;
  try {
    submitters.open();
    submitters.live();
    died = false;
  } catch (const StorageFatal&) {
  } catch (const FileError&) {
  } catch (const SqliteError&) {
  } catch (const client::Failure&) {
  }
  if (!died) return false;
  submitters.close();
  disk.restart(loss, static_cast<std::uint64_t>(point));
  submitters.restore();
  try {
    submitters.open();
    submitters.resume();
    submitters.check();
  } catch (const client::Failure& failure) {
    ADD_FAILURE() << "after the restart: " << failure.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "after the restart: " << error.what();
  }
  return true;
}

class JournalPowerCut : public PowerCutSweep {};

TEST_P(JournalPowerCut, RecordedSubmissionsTakeEffectOnce) { sweep(live_and_die, 100); }

INSTANTIATE_TEST_SUITE_P(, JournalPowerCut, all_losses(), name_of_loss);

}  // namespace
}  // namespace quasi::server::test
