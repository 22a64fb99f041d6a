// Tests the checks that every run makes: each finding, its severity, and the key that allows it.

#include "workers/thermal/solver/calculation/case_checks.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/thermal/decks/checked_deck.hpp"
#include "tests/thermal/decks/model_deck.hpp"
#include "workers/backend/error.hpp"
#include "workers/thermal/solver/harmonic/force_constant_checks.hpp"

namespace quasi::thermal {
namespace {

using test::run_deck;
using test::silicon;
using test::validate;
using test::warns;

// `run` makes the checks of `validate`, and its warnings stand in the summary.
TEST(Checks, RunMakesThoseOfValidate) {
  const auto good = run_deck(silicon(), {"ngrid=4,4,4", "convergence=F"});
  EXPECT_TRUE(good["warnings"].empty()) << good["warnings"];
  const auto report = validate({"ngrid=4,4,4", "convergence=F"});
  for (const auto& [name, check] : report["checks"].items())
    EXPECT_EQ(good["checks"][name], check) << name;
  for (const char* name : {"kappa_range", "kappa_symmetry", "kappa_half_mesh"})
    EXPECT_TRUE(good["checks"].contains(name)) << name;
  for (const auto& [name, check] : good["checks"].items())
    EXPECT_TRUE(check["ok"].get<bool>()) << name << check;
  EXPECT_LT(good["seconds"]["checks"].get<double>(), 1.0);
  const auto narrow = run_deck(
      silicon(), {"ngrid=4,4,4", "convergence=F", "scalebroad=0.005", "allow_few_processes=T"});
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

/// Checks of a deck whose second and third order are multiplied by factors.
struct ScaledChecks {
  std::vector<std::string> warnings;
  nlohmann::json checks;
  std::string refusal;  ///< "" for a deck that may run
};
ScaledChecks scaled_checks(double second, double third, std::vector<std::string> settings) {
  settings.push_back("ngrid=4,4,4");
  Deck deck = read_deck(silicon(), test::settings_of(settings));
  for (double& value : deck.second_order.value) value *= second;
  for (double& value : deck.third_order.tensor) value *= third;
  SilentProgress silent;
  ConductivityRun run = start_run(deck, deck.control.harmonic_options(), silent);
  ScaledChecks result;
  try {
    result.checks = check_case(deck, deck.control.case_options(), run);
  } catch (const InvalidInput& failure) {
    result.refusal = failure.what();
  }
  result.warnings = run.warnings;
  return result;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Second-order constants of silicon give 12.4 eV an atom. A hundredth is below the 0.8 eV of
// crystals with bonds, a thousandth is no crystal, and neither is a hundredfold.
TEST(Checks, SecondOrderInTheWrongUnitIsSaidOrRefused) {
  const std::vector<std::string> harmonic{"onlyharmonic=T"};
  EXPECT_TRUE(scaled_checks(1.0, 1.0, harmonic).warnings.empty());
  const ScaledChecks small = scaled_checks(0.01, 1.0, harmonic);
  EXPECT_EQ(small.refusal, "");
  EXPECT_FALSE(small.checks["sound"]["ok"].get<bool>());
  ASSERT_EQ(small.warnings.size(), 1u);
  EXPECT_TRUE(contains(small.warnings[0], "elastic energy per atom")) << small.warnings[0];
  // Ry/bohr² read as eV/Å² divides by 48.6.
  EXPECT_EQ(scaled_checks(1.0 / 48.587, 1.0, harmonic).warnings.size(), 1u);
  for (const double factor : {0.001, 100.0}) {
    EXPECT_TRUE(contains(scaled_checks(factor, 1.0, harmonic).refusal, "allow_implausible"));
    const ScaledChecks allowed =
        scaled_checks(factor, 1.0, {"onlyharmonic=T", "allow_implausible=T"});
    EXPECT_EQ(allowed.refusal, "");
    EXPECT_FALSE(allowed.warnings.empty());
    EXPECT_EQ(scaled_checks(factor, 1.0, {"onlyharmonic=T", "compat=fourphonon"}).refusal, "");
  }
}

// Grüneisen parameters grow with the third order.
TEST(Checks, ThirdOrderInTheWrongUnitIsSaidOrRefused) {
  const ScaledChecks good = scaled_checks(1.0, 1.0, {});
  EXPECT_TRUE(good.warnings.empty()) << good.warnings.front();
  const double median = good.checks["gruneisen"]["median"].get<double>();
  EXPECT_GT(median, 0.2);
  EXPECT_LT(median, 1.5);
  EXPECT_LE(median, good.checks["gruneisen"]["largest"].get<double>());
  const double to_warn = 6.0 / median, to_refuse = 12.0 / median;
  const ScaledChecks large = scaled_checks(1.0, to_warn, {});
  EXPECT_EQ(large.refusal, "");
  ASSERT_EQ(large.warnings.size(), 1u);
  EXPECT_TRUE(contains(large.warnings[0], "Grüneisen parameter has the size 6"))
      << large.warnings[0];
  EXPECT_TRUE(contains(scaled_checks(1.0, to_refuse, {}).refusal, "allow_implausible"));
  EXPECT_EQ(scaled_checks(1.0, to_refuse, {"allow_implausible=T"}).refusal, "");
}

// Each setting makes one error of the checks, and the key that the message names allows it.
TEST(Checks, ErrorsNameTheKeyThatAllowsThem) {
  struct Case {
    std::vector<std::string> settings;
    const char* text;
    const char* key;
  };
  const Case cases[] = {
      {{"born(:,:,1)=2 0 0 0 2 0 0 0 2", "born(:,:,2)=-1 0 0 0 -1 0 0 0 -1",
        "epsilon=12 0 0 0 12 0 0 0 12", "nonanalytic=T", "allow_imaginary=T"},
       "add up to 1 e",
       "allow_charge"},
      {{"scalebroad=0.001"}, "fewer than 10 three-phonon processes", "allow_few_processes"}};
  for (const Case& c : cases) {
    auto settings = c.settings;
    settings.insert(settings.end(), {"ngrid=4,4,4", "convergence=F"});
    std::string refusal;
    try {
      run_deck(silicon(), settings);
    } catch (const InvalidInput& failure) {
      refusal = failure.what();
    }
    EXPECT_TRUE(contains(refusal, c.text)) << "'" << refusal << "'";
    EXPECT_TRUE(contains(refusal, c.key)) << "'" << refusal << "'";
    settings.push_back(std::string(c.key) + "=T");
    const auto allowed = run_deck(silicon(), settings);
    EXPECT_TRUE(warns(allowed, c.text)) << allowed["warnings"];
  }
}

// Constants of 4×4×4 cells that are read as 2×4×8 have the right number of cells and another order.
TEST(Checks, WrongSupercellNamesTheRightOne) {
  std::string refusal;
  try {
    read_deck(test::model("rocksalt"), test::settings_of({"scell=2,4,8"}));
  } catch (const InvalidInput& failure) {
    refusal = failure.what();
  }
  EXPECT_TRUE(contains(refusal, "their supercell is 4 4 4; correct 'scell'")) << refusal;
  EXPECT_NO_THROW(read_deck(test::model("rocksalt"), {}));
}

// A third order that changes by more than 5 % under the exchange of atoms is refused.
TEST(Checks, BrokenExchangeIsRefused) {
  Deck deck = read_deck(silicon(), test::settings_of({"ngrid=4,4,4"}));
  double largest = 0.0;
  for (const double x : deck.third_order.tensor) largest = std::max(largest, std::fabs(x));
  deck.third_order.tensor[27 * 5 + 1] += 0.1 * largest;
  SilentProgress silent;
  ConductivityRun run = start_run(deck, deck.control.harmonic_options(), silent);
  EXPECT_THROW(check_case(deck, deck.control.case_options(), run), InvalidInput);
  deck.control.allow_broken_permutation = true;
  EXPECT_NO_THROW(check_case(deck, deck.control.case_options(), run));
}

// A coordinate beyond 2 cells and a layer without atoms are said.
TEST(Checks, CoordinatesAndVacuumAreSaid) {
  Deck deck = read_deck(silicon(), test::settings_of({"ngrid=4,4,4", "onlyharmonic=T"}));
  SilentProgress silent;
  ConductivityRun run = start_run(deck, deck.control.harmonic_options(), silent);
  Deck far = deck;
  far.crystal.position[0][1] = 3.0;
  const auto checks = check_case(
      far,
      [&] {
        auto options = far.control.case_options();
        options.checks.allow_inconsistent_position = true;
        return options;
      }(),
      run);
  EXPECT_FALSE(checks["positions"]["ok"].get<bool>());
  bool said = false;
  for (const std::string& warning : run.warnings) said |= contains(warning, "the coordinate 3");
  EXPECT_TRUE(said);
  EXPECT_TRUE(checks["vacuum"]["ok"].get<bool>());
  Deck slab = deck;
  // Atoms of one cell are coupled with each other alone.
  slab.second_order = {.n_atoms = 2, .images = {}, .image_cells = 1};
  for (int atom = 0; atom < 2; ++atom)
    for (int other = 0; other < 2; ++other) {
      SecondOrder::Image image{.atom = atom, .other = other, .weight = 1.0};
      for (int i = 0; i < 3; ++i) image.value[4 * i] = atom == other ? 1000.0 : -1000.0;
      slab.second_order.images.push_back(image);
    }
  for (double& x : slab.crystal.lattice_nm[2]) x *= 8.0;
  for (Vec3& position : slab.crystal.position) position[2] /= 8.0;
  auto options = slab.control.case_options();
  options.checks.allow_inconsistent_position = options.checks.allow_implausible = true;
  ConductivityRun thin = start_run(deck, deck.control.harmonic_options(), silent);
  EXPECT_FALSE(check_case(slab, options, thin)["vacuum"]["ok"].get<bool>());
  ASSERT_FALSE(thin.warnings.empty());
  EXPECT_TRUE(contains(thin.warnings.back(), "sheet_thickness_nm")) << thin.warnings.back();
  options.checks.bulk = false;
  EXPECT_TRUE(check_case(slab, options, thin)["vacuum"]["ok"].get<bool>());
}

// Shipped decks and model crystals give no finding.
TEST(Checks, GoodDecksTripNone) {
  for (const char* name : {"silicon-sw", "wurtzite-sw", "rocksalt"}) {
    const auto report = make_thermal_task()->validate(
        {.path = test::model(name), .settings = test::settings_of({"ngrid=6,6,6"})}, Device{});
    for (const auto& [check, numbers] : report["checks"].items())
      EXPECT_TRUE(numbers["ok"].get<bool>() || check == "constants_3rd")
          << name << check << numbers;
  }
}

// κ is printed with five significant digits, so that small values show.
TEST(Checks, TableShowsSmallConductivities) {
  auto summary = run_deck(silicon(), {"ngrid=4,4,4", "convergence=F"});
  for (auto& row : summary["kappa_rta_w_per_mk"][0])
    for (auto& x : row) x = 1e-7 * x.get<double>();
  const double expected = summary["kappa_rta_w_per_mk"][0][0][0].get<double>();
  const std::string table = make_thermal_task()->table(summary);
  EXPECT_NEAR(std::stod(table.substr(table.find("RTA") + 3)), expected, 5e-5 * expected) << table;
  EXPECT_FALSE(contains(table, "BTE is below RTA"));
  summary["kappa_w_per_mk"] = summary["kappa_rta_w_per_mk"];
  summary["kappa_w_per_mk"][0][1][1] = 0.9 * expected;
  summary["iterations"] = {3};
  summary["residual"] = {1e-6};
  EXPECT_TRUE(contains(make_thermal_task()->table(summary), "BTE is below RTA"));
}

// The checks of κ: its size, its symmetry, and every second point of the mesh.
TEST(Checks, ResultIsJudged) {
  const auto s = test::solve_deck(silicon(), {"ngrid=8,8,8", "convergence=F"});
  ConductivityRun run;
  run.modes = s->run.modes;
  run.by_temperature = s->run.by_temperature;
  run.by_temperature.resize(1);
  const CaseOptions options = s->deck.control.case_options();
  nlohmann::json checks;
  check_result(s->deck, options, run, checks);
  EXPECT_TRUE(checks["kappa_range"]["ok"].get<bool>());
  EXPECT_TRUE(checks["kappa_symmetry"]["ok"].get<bool>());
  EXPECT_LT(checks["kappa_symmetry"]["deviation"].get<double>(), 1e-9);
  EXPECT_NE(checks["kappa_half_mesh"]["of_all_points"].get<double>(), 1.0);
  const std::size_t before = run.warnings.size();
  TemperatureResult& result = run.by_temperature[0];
  const TemperatureResult good = result;
  result.kappa_rta_w_per_mk[0][0] *= 1.01;
  check_result(s->deck, options, run, checks);
  EXPECT_FALSE(checks["kappa_symmetry"]["ok"].get<bool>());
  EXPECT_GT(run.warnings.size(), before);
  result = good;
  for (Vec3& row : result.kappa_rta_w_per_mk)
    for (double& x : row) x *= 1e-5;
  check_result(s->deck, options, run, checks);
  EXPECT_FALSE(checks["kappa_range"]["ok"].get<bool>());
  result = good;
  result.kappa_rta_w_per_mk[1][1] *= -0.1;
  EXPECT_THROW(check_result(s->deck, options, run, checks), InvalidInput);
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
    EXPECT_NEAR(std::stod(table.substr(at + 5)), kappa, 5e-5 * kappa) << table;
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
