// Tests the report of `validate` on a deck: each check notices its mistake, and the plan agrees
// with the run.

#include "workers/thermal/solver/calculation/lint.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdio>

#include "tests/support/reference_data.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/thermal/decks/model_deck.hpp"
#include "tests/thermal/support/solved_deck.hpp"
#include "workers/backend/error.hpp"
#include "workers/thermal/solver/calculation/case_checks.hpp"
#include "workers/thermal/solver/four_phonon/four_phonon_run.hpp"
#include "workers/thermal/solver/harmonic/force_constant_checks.hpp"
#include "workers/thermal/thermal_task.hpp"

namespace quasi::thermal {
namespace {

std::filesystem::path silicon() { return quasi::test::source_dir() / "examples/thermal/silicon"; }

nlohmann::json validate(const std::vector<std::string>& settings) {
  return make_thermal_task()->validate({.path = silicon(), .settings = test::settings_of(settings)},
                                       Device{});
}
bool warns(const nlohmann::json& report, const std::string& part) {
  for (const auto& warning : report["warnings"])
    if (warning.get<std::string>().find(part) != std::string::npos) return true;
  return false;
}

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

TEST(Lint, NoticesAWidthTooSmallForTheMesh) {
  const auto report = validate({"ngrid=5,5,5", "scalebroad=0.02"});
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

/// Summary of a run of a deck.
nlohmann::json run_deck(const std::filesystem::path& path,
                        const std::vector<std::string>& settings) {
  const quasi::test::TemporaryDirectory place;
  SilentProgress silent;
  RunOptions options{.deck = {.path = path, .settings = test::settings_of(settings)},
                     .devices = {Device{}},
                     .output_directory = place.path(),
                     .checkpoint_directory = place.path()};
  return make_thermal_task()->run(options, silent);
}

// `run` makes the checks of `validate`, and its warnings stand in the summary.
TEST(Checks, RunMakesThoseOfValidate) {
  const auto good = run_deck(silicon(), {"ngrid=4,4,4", "convergence=F"});
  EXPECT_TRUE(good["warnings"].empty()) << good["warnings"];
  const auto report = validate({"ngrid=4,4,4", "convergence=F"});
  EXPECT_EQ(good["checks"], report["checks"]);
  for (const auto& [name, check] : good["checks"].items())
    EXPECT_TRUE(check["ok"].get<bool>()) << name << check;
  EXPECT_LT(good["seconds"]["checks"].get<double>(), 1.0);
  const auto narrow = run_deck(silicon(), {"ngrid=4,4,4", "convergence=F", "scalebroad=0.005"});
  EXPECT_FALSE(narrow["checks"]["broadening"]["ok"].get<bool>());
  EXPECT_TRUE(warns(narrow, "fewer than 10"));
  const auto coarse = run_deck(silicon(), {"ngrid=3,3,3", "convergence=F"});
  EXPECT_FALSE(coarse["checks"]["mesh"]["ok"].get<bool>());
  EXPECT_TRUE(warns(coarse, "fewer than 4 divisions"));
}

// Silicon has sound speeds of 4 to 10 km/s and an elastic energy of 12.4 eV an atom.
TEST(Checks, SoundSpeedsOfSilicon) {
  const Deck deck = read_deck(silicon(), test::settings_of({"onlyharmonic=T"}));
  const SoundSpeeds sound = sound_speeds(deck, deck.control.harmonic_options());
  EXPECT_GT(sound.slowest_km_s, 4.0);
  EXPECT_LT(sound.fastest_km_s, 10.0);
  EXPECT_NEAR(sound.elastic_energy_ev, 12.4, 0.3);
  // Constants in Ry/bohr², read as eV/Å², are smaller by 13.6057/0.529177².
  Deck wrong = deck;
  for (double& value : wrong.second_order.value)
    value *= 0.529177210903 * 0.529177210903 / 13.605693;
  EXPECT_NEAR(sound_speeds(wrong, deck.control.harmonic_options()).elastic_energy_ev,
              sound.elastic_energy_ev / 48.587, 1e-3);
}

TEST(Checks, ConstantsInTheWrongUnitAreSaid) {
  Deck deck = read_deck(silicon(), test::settings_of({"ngrid=4,4,4", "onlyharmonic=T"}));
  SilentProgress silent;
  const auto warnings = [&](double factor) {
    Deck scaled = deck;
    for (double& value : scaled.second_order.value) value *= factor;
    ConductivityRun run = start_run(scaled, scaled.control.harmonic_options(), silent);
    const auto checks = check_case(scaled, scaled.control.case_options(), run);
    EXPECT_EQ(checks["sound"]["ok"].get<bool>(), run.warnings.empty());
    return run.warnings.size();
  };
  EXPECT_EQ(warnings(1.0), 0u);
  EXPECT_EQ(warnings(1.0 / 100.0), 1u);  // the elastic energy is below 0.2 eV
  EXPECT_EQ(warnings(100.0), 2u);        // energy and speeds are above their limits
}

// The row `total` of the table is the sum of populations and coherences.
TEST(Checks, TableShowsTheTotal) {
  for (const char* convergence : {"convergence=T", "convergence=F"}) {
    const auto summary = run_deck(silicon(), {"ngrid=4,4,4", convergence});
    const bool iterated = !summary["kappa_w_per_mk"].is_null();
    const double kappa =
        summary[iterated ? "kappa_w_per_mk" : "kappa_rta_w_per_mk"][0][0][0].get<double>() +
        summary["kappa_coherence_w_per_mk"][0][0][0].get<double>();
    const std::string table = make_thermal_task()->table(summary);
    const auto at = table.find("total");
    ASSERT_NE(at, std::string::npos) << table;
    EXPECT_NEAR(std::stod(table.substr(at + 5)), kappa, 1e-4) << table;
  }
}

// A mesh of zone-boundary points alone gives κ = 0, which is an error.
TEST(Checks, MeshWithoutVelocitiesIsRefused) {
  try {
    run_deck(test::model("rocksalt"), {"ngrid=2,2,2", "convergence=F"});
    FAIL() << "κ = 0 was accepted";
  } catch (const InvalidInput& failure) {
    EXPECT_NE(std::string(failure.what()).find("zero velocity by symmetry"), std::string::npos)
        << failure.what();
  }
}

}  // namespace
}  // namespace quasi::thermal
