// Jobs over ranks that are cancelled or lose a rank. They end cleanly, and are resumed by another
// number of ranks with the bits of an undisturbed run.

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <string>

#include "tests/engine/ranks_job.hpp"
#include "tests/support/temporary_directory.hpp"

namespace quasi {
namespace {

namespace fs = std::filesystem;
using namespace test;

// Settings of a job of 8 tiles that writes a checkpoint after each.
const Words kLonger{"ngrid=5 5 5", "checkpoint_interval_s=0", "four_phonon_iteration=.false."};

/// Runs a job of n ranks, and kills its last rank after the first checkpoint. A job whose last rank
/// had no work left succeeds all the same. Its output is then removed, and the job is run again.
/// @return the exit status of the job; 0: it succeeded each time
int lose_last_rank(int n, const Words& words, const fs::path& output, const fs::path& log) {
  int status = 0;
  for (int tries = 0; status == 0 && tries < 20; ++tries) {
    if (tries > 0) fs::remove_all(output);
    const HeldJob held = hold(n, words, output, log, [&] { return has_checkpoint(output); });
    if (held.ranks.empty()) return 0;
    kill(held.ranks.back(), SIGKILL);
    signal_all(held.ranks, SIGCONT);
    status = wait_for(held.job);
  }
  return status;
}

// A job that is cancelled in one rank is resumed by another number of ranks, at last by one
// process. The result has the bits of the undisturbed run.
TEST_F(Ranks, ACancelledJobIsResumedByAnotherNumber) {
  const TemporaryDirectory place;
  const fs::path whole = place.path() / "whole", broken = place.path() / "broken";
  ASSERT_EQ(run({{0, silicon(whole, kLonger)}}, place.path() / "log"), 0)
      << text_of(place.path() / "log");
  for (const int n : {2, 3}) {
    int status = 0;
    // A status of 0 means that the rank had no work left that could be cancelled.
    for (int tries = 0; status == 0 && tries < 20; ++tries) {
      fs::remove_all(broken);
      const HeldJob held = hold(n, silicon(broken, kLonger), broken, place.path() / "log",
                                [&] { return has_checkpoint(broken); });
      ASSERT_FALSE(held.ranks.empty());
      kill(held.ranks.back(), SIGTERM);
      signal_all(held.ranks, SIGCONT);
      status = wait_for(held.job);
    }
    const std::string log = text_of(place.path() / "log");
    EXPECT_EQ(status, 14) << log;
    EXPECT_NE(log.find("error: rank " + std::to_string(n - 1) + ": cancelled"), std::string::npos)
        << log;
    ASSERT_TRUE(has_checkpoint(broken));
    ASSERT_EQ(run({{n == 2 ? 4 : 0, silicon(broken, kLonger)}}, place.path() / "log"), 0)
        << text_of(place.path() / "log");
    expect_same_bits(whole, broken, kThermal);
  }
}

// A gw job that loses one rank after a checkpoint is resumed by another number of ranks, at last by
// one process. The result has the bits of the undisturbed run.
TEST_F(Ranks, AKilledGwJobIsResumedByAnotherNumber) {
  const TemporaryDirectory place;
  for (const std::string& text : kGwDecks) {
    const fs::path deck = write_deck(place.path() / std::to_string(text == kGwDecks[1]), text),
                   alone = deck.parent_path() / "alone", broken = deck.parent_path() / "broken";
    ASSERT_EQ(run({{0, engine("gw", deck, alone)}}, place.path() / "log"), 0)
        << text_of(place.path() / "log");
    for (const int n : {2, 3})
      EXPECT_NE(lose_last_rank(n, engine("gw", deck, broken), broken, place.path() / "log"), 0)
          << text_of(place.path() / "log");
    ASSERT_EQ(
        run({{text == kGwDecks[0] ? 4 : 0, engine("gw", deck, broken)}}, place.path() / "log"), 0)
        << text_of(place.path() / "log");
    expect_same_bits(alone, broken, kGw);
  }
}

// The checkpoint of rank 0 holds the states of points that other ranks compute. A sweep that loses
// a rank is resumed by other numbers of ranks with the bits of the undisturbed run.
TEST_F(Ranks, AKilledMosfetSweepIsResumedByAnotherNumber) {
  const TemporaryDirectory place;
  const fs::path deck = write_sweep(place.path(), "steady"), whole = place.path() / "whole",
                 broken = place.path() / "broken";
  ASSERT_EQ(run({{0, engine("mosfet", deck, whole)}}, place.path() / "log"), 0)
      << text_of(place.path() / "log");
  for (const int n : {2, 3})
    EXPECT_NE(lose_last_rank(n, engine("mosfet", deck, broken), broken, place.path() / "log"), 0)
        << text_of(place.path() / "log");
  ASSERT_EQ(run({{0, engine("mosfet", deck, broken)}}, place.path() / "log"), 0)
      << text_of(place.path() / "log");
  expect_same_bits(whole, broken, mosfet_datasets());
  EXPECT_EQ(text_of(whole / "iv.csv"), text_of(broken / "iv.csv"));
}

// A rank that the kernel kills ends the job with a message that names rank and signal. No rank is
// left, and finished tiles are kept.
TEST_F(Ranks, AKilledRankEndsTheJob) {
  const TemporaryDirectory place;
  const fs::path whole = place.path() / "whole", broken = place.path() / "broken";
  ASSERT_EQ(run({{0, silicon(whole, kLonger)}}, place.path() / "log"), 0);
  for (const std::size_t victim : {0, 1}) {
    fs::remove_all(broken);
    const HeldJob held = hold(2, silicon(broken, kLonger), broken, place.path() / "log",
                              [&] { return has_checkpoint(broken); });
    ASSERT_FALSE(held.ranks.empty());
    kill(held.ranks[victim], SIGKILL);
    signal_all(held.ranks, SIGCONT);
    const int status = wait_for(held.job);
    const std::string log = text_of(place.path() / "log");
    EXPECT_NE(status, 0);
    EXPECT_NE(log.find("rank " + std::to_string(victim)), std::string::npos) << log;
    EXPECT_NE(log.find("signal 9"), std::string::npos) << log;
    EXPECT_FALSE(fs::exists(broken / "result.h5"));
    EXPECT_TRUE(eventually([&] { return ranks_of(broken).empty(); })) << "a rank is left";
  }
  ASSERT_EQ(run({{0, silicon(broken, kLonger)}}, place.path() / "log"), 0)
      << text_of(place.path() / "log");
  expect_same_bits(whole, broken, kThermal);
}

}  // namespace
}  // namespace quasi
