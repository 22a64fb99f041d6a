// Tests the report of `validate` on a deck: each check notices its mistake, and the plan agrees
// with the run.

#include "workers/thermal/solver/calculation/lint.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdio>

#include "tests/support/reference_data.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/thermal/decks/checked_deck.hpp"
#include "tests/thermal/decks/model_deck.hpp"
#include "tests/thermal/support/solved_deck.hpp"
#include "workers/backend/error.hpp"
#include "workers/thermal/solver/calculation/case_checks.hpp"
#include "workers/thermal/solver/four_phonon/four_phonon_run.hpp"
#include "workers/thermal/solver/harmonic/force_constant_checks.hpp"
#include "workers/thermal/thermal_task.hpp"

namespace quasi::thermal {
namespace {

using test::silicon;
using test::validate;
using test::warns;

TEST(Lint, FindsNothingWrongWithTheShippedDeck) {
  const auto report = validate({"ngrid=8,8,8", "four_phonon=T"});
  EXPECT_TRUE(report["ok"].get<bool>());
  EXPECT_TRUE(report["warnings"].empty()) << report["warnings"];
  for (const auto& [name, check] : report["checks"].items())
    EXPECT_TRUE(check["ok"].get<bool>()) << name << check;
  for (const char* name : {"star_symmetry", "constants_2nd", "constants_3rd", "constants_4th",
                           "positions", "modes", "broadening"})
    EXPECT_TRUE(report["checks"].contains(name)) << name;
}

// Compares the plan with the run: the number of three-phonon processes within 5 %, of four-phonon
// processes within 10 %.
TEST(Lint, PlansWhatWillHappen) {
  const std::vector<std::string> settings{"ngrid=5,5,5", "four_phonon=T", "scalebroad=0.5",
                                          "T=300"};
  const auto plan = validate(settings)["plan"];
  const auto s = test::solve_deck(silicon(), settings);
  EXPECT_NEAR(
      plan["processes_3ph_estimate"].get<double>() /
          static_cast<double>(s->run.three_phonon.n_absorption + s->run.three_phonon.n_emission),
      1.0, 0.05);
  SilentProgress silent;
  const quasi::test::TemporaryDirectory place;
  const auto four =
      run_four_phonon(s->transport(), *s->deck.fourth_order, s->deck.control.four_phonon_options(),
                      {.checkpoint_directory = place.path()}, s->run, silent);
  const char* names[] = {"recombination", "redistribution", "splitting"};
  for (int c = 0; c < 3; ++c)
    EXPECT_NEAR(plan["processes_4ph_estimate"][names[c]].get<double>() /
                    four->rates.total_processes(static_cast<Channel4ph>(c)),
                1.0, 0.1)
        << names[c];
  EXPECT_GT(plan["memory_4ph_bytes"].get<double>(), 1e5);
  // The lists kept for the iteration, and the tables of modes.
  const double kept =
      16.0 * static_cast<double>(s->run.three_phonon.n_absorption + s->run.three_phonon.n_emission);
  const double modes =
      static_cast<double>(s->run.modes.n_modes()) * (16.0 * s->run.modes.n_branches + 160.0);
  EXPECT_NEAR(plan["memory_bytes"].get<double>() / (kept + modes), 1.0, 0.05);
}

// The plan announces a list of three-phonon processes that will not fit into the memory.
TEST(Lint, PlansIterationsThatComputeAllAgain) {
  auto report = validate({"ngrid=4,4,4"});
  EXPECT_EQ(report["plan"]["processes_3ph_passes_per_iteration"].get<int>(), 0);
  EXPECT_TRUE(report["warnings"].empty()) << report["warnings"];
  report = validate({"ngrid=4,4,4", "memory_budget_mib=0.05"});
  EXPECT_EQ(report["plan"]["processes_3ph_passes_per_iteration"].get<int>(), 1);
  EXPECT_TRUE(warns(report, "every iteration computes all of them again"));
}

// The plan announces the collision operator with four phonons, one number for every row and mode,
// before it is built.
TEST(Lint, PlansTheIterationOfFourPhonons) {
  const std::vector<std::string> settings{"ngrid=4,4,4", "four_phonon=T",
                                          "four_phonon_iteration=T"};
  const double bytes = 8.0 * 6.0 * 384.0 * 8.0;  // irreducible points, branches, modes
  auto report = validate(settings);
  EXPECT_EQ(report["plan"]["collision_4ph_bytes"].get<double>(), bytes);
  EXPECT_EQ(report["plan"]["checkpoint_4ph_bytes"].get<double>(), bytes);
  EXPECT_EQ(report["plan"]["collision_4ph_passes_per_iteration"].get<int>(), 0);
  EXPECT_FALSE(warns(report, "collision operator"));
  auto limited = settings;
  limited.push_back("checkpoint_limit_mib=0.1");
  report = validate(limited);
  EXPECT_EQ(report["plan"]["checkpoint_4ph_bytes"].get<double>(), 0.0);
  EXPECT_TRUE(warns(report, "above 'checkpoint_limit_mib'"));
}

// The planned time is right within a factor of three. Other programs may use the machine, so one of
// three tries must agree.
TEST(Lint, PlansTheTimeThatIsNeeded) {
  const std::vector<std::string> settings{"ngrid=5,5,5", "four_phonon=T", "scalebroad=0.5",
                                          "T=300"};
  SilentProgress silent;
  bool came_true = false;
  for (int attempt = 0; attempt < 3 && !came_true; ++attempt) {
    const auto plan = validate(settings)["plan"];
    const auto s = test::solve_deck(silicon(), settings);
    const auto start = std::chrono::steady_clock::now();
    run_four_phonon(s->transport(), *s->deck.fourth_order, s->deck.control.four_phonon_options(),
                    {}, s->run, silent);
    const double seconds_4ph =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const double ratio_3ph =
        plan["seconds_3ph_estimate"].get<double>() / s->run.seconds.at("scattering_3ph");
    const double ratio_4ph = plan["seconds_4ph_estimate"].get<double>() / seconds_4ph;
    std::printf("    seconds planned over needed: three phonons %.2f, four %.2f (%.2f s)\n",
                ratio_3ph, ratio_4ph, seconds_4ph);
    came_true = true;
    for (const double ratio : {ratio_3ph, ratio_4ph})
      came_true = came_true && ratio > 1.0 / 3.0 && ratio < 3.0;
  }
  EXPECT_TRUE(came_true);
}

// The plan of a sample names its draws and their time, not the time of the sums over all processes.
// Uniform draws cost the same each, and a sample by weight goes over all processes twice. One of
// three tries must agree within a factor of three.
TEST(Lint, PlansASampleOfFourPhonons) {
  SilentProgress silent;
  for (const char* sampling : {"sampling=uniform", "sampling=by-weight"}) {
    const bool uniform = std::string(sampling) == "sampling=uniform";
    const std::vector<std::string> settings{
        "ngrid=5,5,5",
        "four_phonon=T",
        "scalebroad=0.5",
        "T=300",
        sampling,
        "convergence=F",
        uniform ? "num_sample_process_4ph=3000" : "num_sample_process_4ph=10"};
    bool came_true = false;
    for (int attempt = 0; attempt < 3 && !came_true; ++attempt) {
      const auto plan = validate(settings)["plan"];
      EXPECT_EQ(plan.contains("draws_4ph"), uniform);
      if (uniform) {
        EXPECT_EQ(plan["draws_4ph"].get<int>(), 3000);
      }
      const auto s = test::solve_deck(silicon(), settings);
      const auto start = std::chrono::steady_clock::now();
      run_four_phonon(s->transport(), *s->deck.fourth_order, s->deck.control.four_phonon_options(),
                      {}, s->run, silent);
      const double seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      const double ratio = plan["seconds_4ph_estimate"].get<double>() / seconds;
      std::printf("    %s: seconds planned over needed %.2f (%.2f s)\n", sampling, ratio, seconds);
      came_true = ratio > 1.0 / 3.0 && ratio < 3.0;
    }
    EXPECT_TRUE(came_true) << sampling;
  }
}

TEST(Lint, NoticesAWidthTooSmallForTheMesh) {
  const auto report = validate({"ngrid=5,5,5", "scalebroad=0.02", "allow_few_processes=T"});
  EXPECT_FALSE(report["checks"]["broadening"]["ok"].get<bool>());
  EXPECT_TRUE(warns(report, "fewer than 10"));
}

// Atom 2 is at another periodic image: off the supercell's own wave vectors the stars split.
TEST(Lint, NoticesAPositionThatIsNotTheConstants) {
  const auto report = validate({"ngrid=8,8,8", "positions(:,2)=0.25 0.25 0.25",
                                "allow_inconsistent_position=T", "allow_imaginary=T"});
  EXPECT_FALSE(report["checks"]["star_symmetry"]["ok"].get<bool>());
}

// Atom 2 is moved along [111], which leaves all stars intact: the space group is smaller, and the
// bond along that axis is still the shortest and strongest. A rotation of this crystal exerts
// forces, unlike in a consistent crystal.
TEST(Lint, NoticesAPositionThatNoStarNotices) {
  const auto report = make_thermal_task()->validate(
      {.path = test::model("silicon-sw"),
       .settings = test::settings_of({"ngrid=4,4,4", "positions(:,2)=0.3 0.3 0.3"})},
      Device{});
  EXPECT_TRUE(report["checks"]["star_symmetry"]["ok"].get<bool>());
  EXPECT_FALSE(report["checks"]["positions"]["ok"].get<bool>());
  EXPECT_TRUE(warns(report, "turning the whole crystal"));
  for (const char* name : {"silicon-sw", "wurtzite-sw", "rocksalt"}) {
    const Deck deck = read_deck(test::model(name), test::settings_of({"onlyharmonic=T"}));
    EXPECT_LT(check_bonds(deck.crystal, deck.second_order).rotation, 1e-3) << name;
  }
}

TEST(Lint, NoticesConstantsThatDoNotCommute) {
  Deck deck = read_deck(silicon(), test::settings_of({"ngrid=4,4,4"}));
  EXPECT_LT(permutation_violation(deck.third_order), 1e-9);
  double largest = 0.0;
  for (const double x : deck.third_order.tensor) largest = std::max(largest, std::fabs(x));
  deck.third_order.tensor[27 * 5 + 1] += 0.01 * largest;
  EXPECT_NEAR(permutation_violation(deck.third_order), 0.01, 2e-4);
  SparseForceConstants fourth =
      read_sparse_force_constants(silicon() / "FORCE_CONSTANTS_4TH", 4, deck.crystal);
  EXPECT_LT(permutation_violation(fourth), 1e-9);
  SilentProgress silent;
  ConductivityRun run = start_run(deck, deck.control.harmonic_options(), silent);
  const auto report = lint(deck, deck.control.case_options(), run, Device{});
  EXPECT_FALSE(report["checks"]["constants_3rd"]["ok"].get<bool>());
  ASSERT_FALSE(run.warnings.empty());
}

// Charges that do not add up to zero are noticed. A crystal without charges has no such check.
TEST(Lint, NoticesChargesThatDoNotCancel) {
  const std::vector<std::string> base{"ngrid=4,4,4", "nonanalytic=F", "onlyharmonic=T"};
  EXPECT_FALSE(validate(base)["checks"].contains("born_charges"));
  auto charged = base;
  charged.insert(charged.end(),
                 {"born(:,:,1)=1 0 0 0 1 0 0 0 1", "born(:,:,2)=-0.9 0 0 0 -0.9 0 0 0 -0.9"});
  const auto report = validate(charged);
  EXPECT_NEAR(report["checks"]["born_charges"]["sum_e"].get<double>(), 0.1, 1e-12);
  EXPECT_TRUE(warns(report, "add up to 0.1"));
}

TEST(Lint, BondsAreWhereTheStrongestBlocksAre) {
  const Deck deck = read_deck(silicon(), test::settings_of({"onlyharmonic=T"}));
  const BondCheck bonds = check_bonds(deck.crystal, deck.second_order);
  EXPECT_NEAR(bonds.nearest_nm, std::sqrt(3.0) / 4.0 * 0.539760755138, 1e-9);
  EXPECT_NEAR(bonds.strongest_nm, bonds.nearest_nm, 1e-9);
}

}  // namespace
}  // namespace quasi::thermal
