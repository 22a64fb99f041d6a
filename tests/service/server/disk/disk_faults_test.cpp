// A disk that is full for a while, and a disk on which one sync fails. A full disk refuses work by
// its reason and the server goes on when there is room. A failed sync ends the server at once, and
// nothing that it acknowledged is lost.

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "server/store/syncs/strict_syncs.hpp"
#include "tests/service/server/disk/story_checks.hpp"

namespace quasi::server::test {
namespace {

/// QUASI_ALL_POINTS=1 tries every point.
std::int64_t stride(std::int64_t usual) {
  return std::getenv("QUASI_ALL_POINTS") != nullptr ? 1 : usual;
}

int unfinished(ServerStory& story) {
  return static_cast<int>(number(story.database(), "SELECT count(*) FROM jobs WHERE state<7"));
}

/// Lets the disk be full from a change on, makes room, and finishes the work in the same process.
/// @return false if the story ended before the disk was full
bool fill_and_go_on(std::int64_t point, int& refusals) {
  PowerCutDisk disk(kServerRoot);
  ServerStory story(disk, 42);
  story.open();
  disk.fill_at(point);
  try {
    story.live();
  } catch (const Refused& refused) {
    EXPECT_EQ(refused.reason, "STORAGE_FULL");
    ++refusals;
  } catch (const FileError& error) {  // An upload is answered with the same reason.
    EXPECT_TRUE(error.is_full()) << error.what();
    ++refusals;
  } catch (const StorageFatal& error) {
    ADD_FAILURE() << "a full disk ended the server: " << error.what();
    return true;
  }
  if (!disk.is_full()) return false;
  EXPECT_THROW(story.submit(900), Refused) << "work is accepted that cannot be stored";
  disk.make_room();
  try {
    expect_promises_kept(story);
    story.finish();
    EXPECT_EQ(unfinished(story), 0) << "I1: a job that does not end";
    story.close();
    story.open();  // The start removes files whose row did not fit.
    check(story);
    expect_nothing_left_of_deleted(story);
  } catch (const std::exception& error) {
    ADD_FAILURE() << "after there was room: " << error.what();
  }
  return true;
}

TEST(FullDisk, AtEachChangeRefusesWorkAndLosesNone) {
  int points = 0, refusals = 0;
  for (std::int64_t point = 1; fill_and_go_on(point, refusals); point += stride(61)) {
    ++points;
    ASSERT_FALSE(HasFailure()) << "with the disk full from change " << point << " on";
  }
  std::cout << points << " points, " << refusals << " of them refused a request of the story\n";
  EXPECT_GT(refusals, points / 2);
}

/// Lets one sync fail after the start on a store that is there. The server has to end, without
/// another sync; then it starts again.
/// @return false if the story has fewer syncs
bool fail_and_restart(std::int64_t sync) {
  PowerCutDisk disk(kServerRoot);
  StrictSyncs strict(disk, [](const FileError& error) { throw StorageFatal(74, error.what()); });
  ServerStory story(disk, 42, &strict);
  story.open();
  story.close();
  disk.fail_sync_at(sync);
  bool ended = false;
  try {
    story.open();
    story.live();
  } catch (const StorageFatal& error) {
    EXPECT_EQ(error.exit_status, 74) << error.what();
    ended = true;
  } catch (const SqliteError& error) {  // while the store is opened; main() ends with 74
    EXPECT_TRUE(error.is_io()) << error.what();
    ended = true;
  }
  if (disk.syncs() < sync) return false;
  EXPECT_TRUE(ended) << "the server goes on";
  EXPECT_EQ(disk.syncs(), sync) << "a sync was repeated";
  disk.cut_at(1);  // The process has ended: nothing more is written.
  story.close();
  disk.restart(PowerCutDisk::Loss::kEverything, static_cast<std::uint64_t>(sync));
  try {
    story.open();
    check(story);
    if (testing::Test::HasFailure()) return true;
    story.finish();
    EXPECT_EQ(unfinished(story), 0) << "I1: a job that does not end";
    check(story);
  } catch (const std::exception& error) {
    ADD_FAILURE() << "after the restart: " << error.what();
  }
  return true;
}

TEST(FailedSync, OfEachFileEndsTheServerAndLosesNothing) {
  int points = 0;
  for (std::int64_t sync = 1; fail_and_restart(sync); sync += stride(7)) {
    ++points;
    ASSERT_FALSE(HasFailure()) << "with sync " << sync << " failing";
  }
  std::cout << points << " syncs\n";
  EXPECT_GE(points, 15) << "the story has more than a hundred syncs";
}

}  // namespace
}  // namespace quasi::server::test
