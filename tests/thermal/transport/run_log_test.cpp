// Tests what a run says in its log: no resuming without an interruption, and no warning, since
// warnings stand after the table.

#include <gtest/gtest.h>

#include <mutex>

#include "tests/thermal/decks/checked_deck.hpp"

namespace quasi::thermal {
namespace {

/// Keeps the lines of the log.
class LoggedProgress : public SilentProgress {
 public:
  void log(std::string_view line) override {
    const std::lock_guard lock(mutex_);
    text += std::string(line) + "\n";
  }
  std::string text;

 private:
  std::mutex mutex_;
};

// Every step of an uninterrupted run reads the checkpoints of the steps before it. They are written
// here after every piece.
TEST(RunLog, UninterruptedRunsSayNothingOfResuming) {
  const quasi::test::TemporaryDirectory place;
  LoggedProgress progress;
  RunOptions options{.deck = {.path = test::silicon(),
                              .settings = test::settings_of(
                                  {"ngrid=3,3,3", "scalebroad=0.5", "four_phonon=T",
                                   "four_phonon_iteration=T", "T=300", "checkpoint_interval_s=0"})},
                     .devices = {Device{}},
                     .output_directory = place.path(),
                     .checkpoint_directory = place.path()};
  const auto summary = make_thermal_task()->run(options, progress);
  EXPECT_EQ(progress.text.find("resumed"), std::string::npos) << progress.text;
  EXPECT_EQ(progress.text.find("not used"), std::string::npos) << progress.text;
  // Warnings stand in the summary and below the table, once.
  ASSERT_FALSE(summary["warnings"].empty());  // the mesh has three divisions
  EXPECT_EQ(progress.text.find("warning"), std::string::npos) << progress.text;
  const std::string warning = summary["warnings"][0].get<std::string>();
  const std::string table = make_thermal_task()->table(summary);
  EXPECT_NE(table.find(warning), std::string::npos);
  EXPECT_EQ(table.find(warning), table.rfind(warning));
}

}  // namespace
}  // namespace quasi::thermal
