// The power is cut before every change that the server makes to the disk, under three models of the
// bytes that survive. After the restart every acknowledged answer must hold (I1 to I4 and I6 to I13
// of docs/invariants.md), and the server must be able to finish the work.

#include <gtest/gtest.h>

#include "tests/service/files/power_cut_sweep.hpp"
#include "tests/service/server/disk/story_checks.hpp"

namespace quasi::server::test {
namespace {

using Loss = PowerCutDisk::Loss;

/// Runs the story with the power cut before change `point`, restarts and checks. An honest disk
/// stores synced bytes. @return false if the story ended before the cut
bool live_and_die(std::int64_t point, Loss loss, bool honest = true) {
  PowerCutDisk disk(kServerRoot);
  if (!honest) disk.lie_about_syncs();
  ServerStory story(disk, 42);
  disk.cut_at(point);
  bool died = false;
  try {
    story.open();
    story.live();
  } catch (const StorageFatal&) {
    died = true;
  } catch (const FileError&) {
    died = true;
  } catch (const SqliteError&) {  // The power is cut while the database is opened.
    died = true;
  }
  if (!died && honest) return false;
  story.close();
  disk.restart(loss, static_cast<std::uint64_t>(point));
  try {
    story.open();
    check(story);
    if (!testing::Test::HasFailure()) {
      story.finish();
      EXPECT_EQ(number(story.database(), "SELECT count(*) FROM jobs WHERE state<7"), 0)
          << "I1: a job that does not end";
      check(story);
      expect_nothing_left_of_deleted(story);
    }
  } catch (const std::exception& error) {
    ADD_FAILURE() << "after the restart: " << error.what();
  }
  return true;
}

class PowerCut : public PowerCutSweep {};

TEST_P(PowerCut, BeforeEveryChangeLosesNothingAcknowledged) {
  sweep([](std::int64_t point, Loss loss) { return live_and_die(point, loss); }, 200);
}

INSTANTIATE_TEST_SUITE_P(, PowerCut, all_losses(), name_of_loss);

// The checks find a disk that claims to have synced bytes and has not.
TEST(PowerCutDisk, ADiskThatLiesIsCaught) {
  PowerCutDisk disk(kServerRoot);
  disk.lie_about_syncs();
  ServerStory story(disk, 42);
  story.open();
  story.live();
  const auto uids = story.told().job_of_request;
  ASSERT_FALSE(uids.empty());
  story.close();
  disk.restart(Loss::kEverything, 1);
  story.open();
  EXPECT_FALSE(story.world().engine.store().find_job(Scope::everything(), uids.begin()->second));
}

}  // namespace
}  // namespace quasi::server::test
