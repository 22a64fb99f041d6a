// Tests jobs with pseudobands by polynomials of H (docs/theory/gw.md 9.5).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/gw/support/pseudoband_crystals.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/output/summary.hpp"

namespace quasi::gw {
namespace {

using test::plane_waves;

constexpr const char* kDeck =
    "[meanfield]\nsource = \"epm\"\ncell = \"cubic\"\ncutoff_ry = 8.0\n"
    "[epsilon]\ncutoff_ry = 3.0\n[sigma]\nband_min = 14\nband_max = 18\n";

Calculation run(int bands, const std::string& solver, const std::string& pseudobands,
                int devices = 1) {
  SilentProgress silent;
  DeviceTeam team(std::vector<Device>(static_cast<std::size_t>(devices), find_device("cpu")));
  return run_calculation(parse_deck(kDeck + pseudobands,
                                    {Setting{"meanfield.solver", solver},
                                     Setting{"meanfield.bands", std::to_string(bands)}},
                                    "test", "."),
                         {.team = team, .memory_budget_bytes = std::int64_t{1} << 30}, silent);
}
std::string refusal_of(int bands, const std::string& solver, const std::string& pseudobands) {
  try {
    run(bands, solver, pseudobands);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

// A job calculates 70 of 420 states, and its interval holds the energies of the job of all bands.
TEST(FilteredPseudobandJobs, AgreeWithAllBandsAndHaveTheSameBitsOnThreeDevices) {
  const std::string wanted = "[pseudobands]\nvectors = 8\nblocks = 4\n";
  const Calculation all = run(plane_waves("silicon", 8.0), "dense", ""),
                    found = run(70, "operator", wanted), three = run(70, "operator", wanted, 3);
  EXPECT_GT(all.plan.sigma.bands, 400);
  ASSERT_TRUE(found.pseudoband_errors);
  ASSERT_EQ(found.quasiparticles.size(), all.quasiparticles.size());
  for (std::size_t i = 0; i < all.quasiparticles.size(); ++i) {
    EXPECT_EQ(found.quasiparticles[i].sigma_ev, three.quasiparticles[i].sigma_ev);
    EXPECT_NEAR(found.pseudoband_errors->estimate_ev[i], all.quasiparticles[i].sigma_ev,
                1.5 * found.pseudoband_errors->half_width_ev[i] + 0.01);
  }
  const auto summary = summary_of(found, find_device("cpu"), 1).at("pseudobands");
  EXPECT_LE(summary.at("given_bands").get<int>(), 70);
  EXPECT_GT(summary.at("degree").get<int>(), 100);
  EXPECT_LE(summary.at("identity_error").get<double>(), 1e-3);
}

// More vectors in Σ leave χ as it is, bit by bit. The half-widths hold the noise of both.
TEST(FilteredPseudobandJobs, MoreVectorsInSigmaNarrowTheIntervals) {
  const std::string wanted = "[pseudobands]\nvectors = 8\nblocks = 8\n";
  const Calculation one = run(70, "operator", wanted),
                    eight = run(70, "operator", wanted + "sigma_factor = 8\n");
  EXPECT_EQ(eight.epsilon[0].inverse, one.epsilon[0].inverse);
  EXPECT_EQ(summary_of(eight, find_device("cpu"), 1).at("pseudobands").at("sigma_vectors"), 64);
  // The noise of χ alone is about a half of the whole (docs/performance/methods.md).
  double narrow = 0.0, wide = 0.0;
  for (std::size_t i = 0; i < one.quasiparticles.size(); ++i) {
    narrow += std::pow(eight.pseudoband_errors.value().half_width_ev[i], 2);
    wide += std::pow(one.pseudoband_errors.value().half_width_ev[i], 2);
  }
  std::printf("squares of half-widths fall to %.2f\n", narrow / wide);
  EXPECT_LT(narrow, 0.7 * wide);
  EXPECT_NE(refusal_of(70, "operator", wanted + "sigma_factor = 65\n").find("sigma_factor"),
            std::string::npos);
  EXPECT_NE(refusal_of(70, "operator", "[pseudobands]\nsigma_factor = 2\n").find("without vectors"),
            std::string::npos);
}

TEST(FilteredPseudobandJobs, TheBiasOfJacksonDampedSlicesIsPrinted) {
  const Calculation found =
      run(70, "operator", "[pseudobands]\nvectors = 2\nwindows = \"jackson\"\n");
  bool printed = false;
  for (const std::string& note : found.plan.notes)
    printed = printed || note.find("% of the weight of all states") != std::string::npos;
  EXPECT_TRUE(printed);
  const auto summary = summary_of(found, find_device("cpu"), 1).at("pseudobands");
  EXPECT_GT(summary.at("lost_weight").get<double>(), 0.01);
}

TEST(FilteredPseudobandJobs, KeysAndBandsThatDoNotFitAreRefused) {
  const std::string wanted = "[pseudobands]\nvectors = 1\n";
  EXPECT_NE(
      refusal_of(30, "operator", wanted + "protected_ry = 2.0\n").find("pseudobands.protected_ry"),
      std::string::npos);
  for (const char* line : {"windows = \"jackson\"\n", "degree = 100\n"})
    EXPECT_NE(refusal_of(70, "dense", wanted + line).find("meanfield.solver"), std::string::npos);
  EXPECT_NE(refusal_of(70, "operator", wanted + "degree = 60\n").find("max_identity_error"),
            std::string::npos);
  EXPECT_NE(
      refusal_of(70, "operator", wanted + "windows = \"jackson\"\nmax_identity_error = 1e-4\n")
          .find("max_identity_error"),
      std::string::npos);
}

/// Holds the notes of a job with a target, and its largest half-width.
struct TargetedJob {
  std::string notes;
  double half_width_ev = 0.0;
  int vectors = 0;
};
TargetedJob run_with_target(const std::string& target_ev) {
  const Calculation done =
      run(70, "operator", "[pseudobands]\nvectors = 4\nblocks = 4\n" + target_ev);
  TargetedJob job{.notes = {}, .vectors = done.pseudobands->vectors};
  for (const std::string& note : done.plan.notes) job.notes += note + '\n';
  job.half_width_ev = done.pseudoband_errors->gap_half_width_ev.value();
  for (const double value : done.pseudoband_errors->half_width_ev)
    job.half_width_ev = std::max(job.half_width_ev, value);
  return job;
}

// The first plan multiplies the vectors by 1.5 (h/E)² with the pilot's half-width h.
TEST(PseudobandTargets, PlannedJobsReachTheTarget) {
  const TargetedJob pilot = run_with_target("");
  EXPECT_EQ(pilot.notes.find("target_error_ev"), std::string::npos);
  const double target_ev = 0.8 * pilot.half_width_ev;
  const TargetedJob found =
      run_with_target("target_error_ev = " + std::to_string(target_ev) + "\n");
  const double planned = 4.0 * 1.5 / (0.8 * 0.8);
  EXPECT_EQ(pilot.vectors, 4);
  EXPECT_GE(found.vectors, planned);
  EXPECT_LE(found.vectors, 64 * 4);
  EXPECT_NE(found.notes.find("is reached: the largest half-width"), std::string::npos)
      << found.notes;
  EXPECT_LE(found.half_width_ev, target_ev);
}

TEST(PseudobandTargets, ATargetThatIsMetNeedsNoSecondJob) {
  const TargetedJob found = run_with_target("target_error_ev = 5.0\n");
  EXPECT_EQ(found.vectors, 4);
  EXPECT_NE(found.notes.find("is reached"), std::string::npos) << found.notes;
}

TEST(PseudobandTargets, ATargetOutOfReachIsSaidToBe) {
  const TargetedJob found = run_with_target("target_error_ev = 2e-4\n");
  EXPECT_EQ(found.vectors, 4);
  EXPECT_NE(found.notes.find("is not reached"), std::string::npos) << found.notes;
  EXPECT_NE(found.notes.find("would take"), std::string::npos) << found.notes;
}

// The target alone chooses windows, vectors and blocks, which a note says before the job starts.
// The half-widths and the bound of the window width are then within it.
TEST(PseudobandTargets, TheTargetAloneChoosesWindowsVectorsAndBlocks) {
  const Calculation done =
      run(70, "operator", "[pseudobands]\nprotected_ry = 0.3\ntarget_error_ev = 0.08\n");
  const PseudobandErrors& errors = done.pseudoband_errors.value();
  EXPECT_EQ(errors.blocks, 8);
  EXPECT_EQ(done.pseudobands->vectors % 8, 0);
  double largest = errors.gap_half_width_ev.value();
  for (const double value : errors.half_width_ev) largest = std::max(largest, value);
  for (const double value : errors.window_width_ev) largest = std::max(largest, value);
  EXPECT_LE(largest, 0.08);
  std::string notes;
  for (const std::string& note : done.plan.notes) notes += note + '\n';
  EXPECT_NE(notes.find("target_error_ev = 0.08 chooses pseudobands.ratio = "), std::string::npos)
      << notes;
  EXPECT_NE(notes.find("blocks = 8"), std::string::npos) << notes;
}

// Numbers of the deck stay as they are. The blocks divide its vectors.
TEST(PseudobandTargets, ChoosesOnlyTheNumbersThatTheDeckLacks) {
  const auto options = [](const std::string& more) {
    return parse_deck(
               "[meanfield]\nsource = \"epm\"\n[epsilon]\ncutoff_ry = 3.0\n"
               "[pseudobands]\ntarget_error_ev = 0.02\n" +
                   more,
               {}, "test", ".")
        .pseudobands;
  };
  const PseudobandOptions none = options("");
  EXPECT_EQ(none.vectors, 16);
  EXPECT_EQ(none.blocks, 8);
  EXPECT_NEAR(none.ratio, 0.30, 1e-12);
  const PseudobandOptions some = options("vectors = 12\nratio = 0.4\n");
  EXPECT_EQ(some.vectors, 12);
  EXPECT_EQ(some.blocks, 6);
  EXPECT_EQ(some.ratio, 0.4);
  EXPECT_FALSE(some.chooses_ratio || some.chooses_vectors);
  EXPECT_EQ(options("blocks = 5\n").vectors, 10);
  EXPECT_NE(refusal_of(70, "operator", "[pseudobands]\nvectors = 11\ntarget_error_ev = 0.1\n")
                .find("no divisor from 3 to 8"),
            std::string::npos);
}

}  // namespace
}  // namespace quasi::gw
