// Tests the beam scheme coupled to Schrödinger and Poisson, on a coarse mesh of the default device.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "tests/mosfet/fixtures.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/io/hdf5.hpp"
#include "workers/mosfet/mosfet_task.hpp"
#include "workers/mosfet/solver/sweep/mesh_study.hpp"
#include "workers/mosfet/solver/sweep/sweep.hpp"
#include "workers/mosfet/solver/sweep/sweep_pieces.hpp"

namespace quasi::mosfet {
namespace {

Deck beam_deck(const std::string& vgs, const std::string& vds,
               const std::vector<Setting>& settings = {}) {
  std::vector<Setting> all{{"mesh.subbands", "2"}, {"mesh.dh_ev", "0.0125"}, {"mesh.nkappa", "8"},
                           {"run.scheme", "beam"}, {"bias.vgs", vgs},        {"bias.vds", vds}};
  all.insert(all.end(), settings.begin(), settings.end());
  return test::default_deck(33, 17, all);
}

std::vector<PointResult> run(const Deck& deck) {
  SilentProgress silent;
  return run_sweep(deck, {.devices = {find_device("cpu")}}, silent);
}

// Without drain bias no current flows and phonons take no power, with either statistics and all
// pairs.
TEST(BeamPoint, NothingFlowsWithoutDrainBias) {
  for (const char* statistics : {"maxwell", "fermi"})
    for (const PointResult& point :
         run(beam_deck("[-0.2, 0.2, 0.6]", "0.0", {{"statistics.kind", statistics}}))) {
      SCOPED_TRACE(std::string(statistics) + " " + std::to_string(point.bias.vgs_v));
      EXPECT_LT(std::fabs(point.numbers.at("current_a_per_m")), 1e-6);
      EXPECT_LT(point.numbers.at("current_spread_a_per_m"), 1e-6);
      for (const double power : point.arrays.at("phonon_power").values)
        EXPECT_LT(std::fabs(power), 1e-3);  // W/m², 1e-12 of the emission alone
    }
}

// Below threshold the current follows the barrier. The swing of the currents equals the swing from
// the point's own barriers, and no current exceeds the ballistic one.
TEST(BeamPoint, TheSwingIsThatOfItsBarriers) {
  const auto points = run(beam_deck("[0.0, 0.1]", "0.4"));
  const auto swing = [&](const char* name) {
    return 100.0 / std::log10(points[1].numbers.at(name) / points[0].numbers.at(name));
  };
  EXPECT_NEAR(swing("current_a_per_m") / swing("ballistic_a_per_m"), 1.0, 0.02);
  for (const PointResult& point : points) {
    EXPECT_LE(point.numbers.at("ballistic_ratio"), 1.0);
    EXPECT_GT(point.numbers.at("ballistic_ratio"), 0.5);
  }
}

// The laws hold above threshold too, where no barrier is left.
TEST(BeamPoint, EnergyAndCurrentAreConservedAboveThreshold) {
  for (const PointResult& point : run(beam_deck("0.6", "[0.05, 0.4]"))) {
    const double current = point.numbers.at("current_a_per_m");
    EXPECT_GT(current, 100.0);
    EXPECT_LE(point.numbers.at("ballistic_ratio"), 1.0);
    EXPECT_LT(point.numbers.at("current_spread_a_per_m"), 1e-6 * current);
    EXPECT_LT(point.numbers.at("energy_defect_w_per_m"), 1e-6 * point.bias.vds_v * current);
  }
}

// The velocity of the file times its density is the conserved current, in every column. In the
// contacts electrons have the energy of the film's equilibrium, kT (1+4αkT)/(1+2αkT); in the drain
// they arrive hot.
TEST(BeamPoint, VelocityAndEnergyBelongToTheFluxes) {
  constexpr double kT = 8.617333262e-5 * 300.0, kAmpere_per_m = 1.602176634e5;
  const PointResult point = run(beam_deck("0.4", "0.4"))[0];
  const auto& current = point.arrays.at("current_x").values;
  const auto& sheet = point.arrays.at("sheet_density").values;
  const auto& velocity = point.arrays.at("velocity").values;
  const auto& mean = point.arrays.at("velocity_mean").values;
  const auto& energy = point.arrays.at("energy_mean").values;
  for (std::size_t i = 0; i < 33; ++i) {
    double flux = 0.0, density = 0.0;
    for (std::size_t state = 0; state < 6; ++state) {
      flux += 2.0 * sheet[state * 33 + i] * velocity[state * 33 + i];
      density += 2.0 * sheet[state * 33 + i];
    }
    const double at_node = 0.5 * (current[i] + current[i + 1]);
    EXPECT_NEAR(flux * kAmpere_per_m, at_node, 1e-8 * std::fabs(at_node)) << i;
    EXPECT_NEAR(mean[i] * density * kAmpere_per_m, at_node, 1e-8 * std::fabs(at_node)) << i;
  }
  // Cells of 12.5 meV place the electrons of the last one at its centre: ΔH²/12kT, which is 2 %.
  const double thermal = kT * (1.0 + 2.0 * kT) / (1.0 + kT);  // 2α = 1 per eV
  EXPECT_NEAR(energy[0] / thermal, 1.0, 0.04);
  EXPECT_GT(*std::max_element(energy.begin() + 20, energy.end()), 2.0 * thermal);
}

// Early outer steps solve transport and field as accurately as their size deserves. The last one is
// accurate, so that the current is that of a much smaller run.tol_v: 1e-6 V leave some 1e-5 of it.
// With accurate steps alone the points took 100 and 183 line solves.
TEST(BeamPoint, LooseEarlySolutionsKeepTheCurrent) {
  for (const char* vgs : {"0.0", "0.5"}) {
    const PointResult point = run(beam_deck(vgs, "0.4"))[0],
                      exact = run(beam_deck(vgs, "0.4", {{"run.tol_v", "1e-9"}}))[0];
    const auto current = [](const PointResult& of) { return of.numbers.at("current_a_per_m"); };
    EXPECT_NEAR(current(point) / current(exact), 1.0, 1e-4) << vgs;
    EXPECT_LT(point.numbers.at("line_solves"), 120.0) << vgs;
  }
}

TEST(BeamPoint, BlockedTransportConverges) {
  const auto points = run(beam_deck("0.4", "0.2", {{"statistics.kind", "fermi"}}));
  const double current = points[0].numbers.at("current_a_per_m");
  EXPECT_GT(current, 10.0);
  EXPECT_LE(points[0].numbers.at("ballistic_ratio"), 1.0);
  EXPECT_LT(points[0].numbers.at("energy_defect_w_per_m"), 1e-4 * 0.2 * current);
}

// Roughness and impurities lower the current and keep the laws. All kinds of devices give the
// results of the CPU, which computes them.
TEST(BeamPoint, RoughnessAndImpuritiesLowerTheCurrent) {
  const auto deck = [](const char* vds, const std::vector<Setting>& settings) {
    std::vector<Setting> all{{"mesh.subbands", "1"}};
    all.insert(all.end(), settings.begin(), settings.end());
    return beam_deck("0.5", vds, all);
  };
  const Setting rough{"scattering.roughness.height_nm", "0.6"},
      doped{"scattering.impurities", "true"};
  double before = run(deck("0.3", {}))[0].numbers.at("current_a_per_m");
  for (const std::vector<Setting>& settings : {std::vector{rough}, {rough, doped}}) {
    const PointResult point = run(deck("0.3", settings))[0];
    const double current = point.numbers.at("current_a_per_m");
    EXPECT_LT(current, 0.995 * before);
    EXPECT_GT(current, 0.3 * before);
    EXPECT_LT(point.numbers.at("current_spread_a_per_m"), 1e-6 * current);
    EXPECT_LT(point.numbers.at("energy_defect_w_per_m"), 1e-6 * 0.3 * current);
    EXPECT_EQ(point.arrays.at("phonon_power").values.size(), 7u * 33u);
    before = current;
  }
  for (const Device& device : test::one_device_of_each_kind()) {
    SilentProgress silent;
    const auto points =
        run_sweep(deck("[0.0, 0.3]", {rough, doped}), {.devices = {device}}, silent);
    EXPECT_LT(std::fabs(points[0].numbers.at("current_a_per_m")), 1e-6) << device.name();
    EXPECT_EQ(points[1].numbers.at("current_a_per_m"), before) << device.name();
  }
}

// Neutral inflow holds the charge of the contact columns at their doping, 0.6 nm⁻² at 1e20 cm⁻³ and
// 6 nm, where fixed inflow leaves them short by more than 1 %. Without bias it needs no factor. The
// error of the grid in the contact columns under bias, 6e-4 of the charge here, remains.
TEST(BeamPoint, NeutralInflowKeepsTheContactsNeutral) {
  for (const char* statistics : {"maxwell", "fermi"}) {
    SCOPED_TRACE(statistics);
    const Setting kind{"statistics.kind", statistics};
    const PointResult fixed = run(beam_deck("0.6", "0.4", {kind}))[0];
    const auto neutral = run(beam_deck("0.6", "[0.0, 0.4]", {kind, {"contact.inflow", "neutral"}}));
    const auto missing = [](const PointResult& point, std::size_t column) {
      double sheet = 0.0;
      for (std::size_t state = 0; state < 6; ++state)
        sheet += 2.0 * point.arrays.at("sheet_density").values[state * 33 + column];
      return 1.0 - sheet / 0.6;
    };
    // Neutral is the contact column by Gauss' law, whose two lowest subbands hold these electrons.
    const double at_rest = missing(neutral[0], 0);
    EXPECT_GT(missing(fixed, 0), at_rest + 0.01);
    for (const std::size_t column : {0u, 32u})
      EXPECT_NEAR(missing(neutral[1], column), at_rest, 1e-3) << column;
    for (const char* name : {"inflow_scale_source", "inflow_scale_drain"})
      EXPECT_NEAR(neutral[0].numbers.at(name), 1.0, 1e-10);
    EXPECT_GT(neutral[1].numbers.at("inflow_scale_source"), 1.01);
    EXPECT_LT(std::fabs(neutral[0].numbers.at("current_a_per_m")), 1e-6);
    const double current = neutral[1].numbers.at("current_a_per_m");
    EXPECT_GT(current, fixed.numbers.at("current_a_per_m"));
    EXPECT_LT(neutral[1].numbers.at("energy_defect_w_per_m"), 1e-4 * 0.4 * current);
  }
}

// A job with the beam scheme writes the files of a sweep and its fluxes.
TEST(BeamPoint, AJobWritesItsFluxes) {
  const test::TemporaryDirectory directory;
  std::ofstream(directory.path() / "deck.toml")
      << "parameters = \"paper\"\n"
         "[mesh]\nnx = 33\nnz = 17\nsubbands = 1\ndh_ev = 0.025\nnkappa = 4\n"
         "[bias]\nvgs = [0.0, 0.1]\nvds = [0.2]\n[run]\nscheme = \"beam\"\n";
  RunOptions options;
  options.deck.path = directory.path() / "deck.toml";
  options.devices = {find_device("cpu")};
  options.output_directory = directory.path();
  SilentProgress silent;
  const auto task = make_mosfet_task();
  const nlohmann::json summary = task->run(options, silent);
  EXPECT_NEAR(summary["derived"]["curves"][0]["subthreshold_swing_mv_per_decade"].get<double>(),
              98.0, 8.0);
  EXPECT_NE(task->table(summary).find("converged"), std::string::npos);
  const auto rows = test::read_csv(directory.path() / "iv.csv");
  ASSERT_EQ(rows.size(), 2u);
  // Numbers have the shortest digits that keep every bit: 0.1, not 0.10000000000000001.
  std::ifstream csv(directory.path() / "iv.csv");
  const std::string text{std::istreambuf_iterator<char>(csv), {}};
  EXPECT_NE(text.find("\n0.1,0.2,"), std::string::npos) << text;
  const H5Reader file(directory.path() / "result.h5");
  const auto current = file.doubles("/points/1/current_x"),
             flux = file.doubles("/points/1/energy_flux"),
             power = file.doubles("/points/1/phonon_power");
  EXPECT_EQ(current[17], rows[1][2]);
  // The phonons take q times the fall of energy flux from source to drain, in 7 processes.
  double taken = 0.0;
  ASSERT_EQ(power.size(), 7u * 33u);
  for (const double value : power) taken += value * 1e-9;  // W/m² times Δx = 1 nm
  EXPECT_NEAR(flux.front() - flux.back(), taken, 1e-6 * 0.2 * current[17]);
  EXPECT_GT(taken, 0.0);
}

// Several points at once, and points of several devices, have the bits of one after the other.
TEST(BeamPoint, SeveralDevicesShareThePoints) {
  SilentProgress silent;
  for (const Device& device : test::one_device_of_each_kind()) {
    const Deck deck = beam_deck("[0.0, 0.2, 0.4]", "0.2", {{"mesh.subbands", "1"}});
    const auto together = run_sweep(deck, {.devices = {device, device}}, silent);
    for (std::size_t k = 0; k < deck.points.size(); ++k) {
      Deck alone = deck;
      alone.points = {deck.points[k]};
      EXPECT_EQ(together[k].numbers, run_sweep(alone, {.devices = {device}}, silent)[0].numbers)
          << k;
    }
  }
}

/// Keeps the lines of the log.
class Listening : public SilentProgress {
 public:
  void log(std::string_view line) override { heard_ += std::string(line) + '\n'; }
  bool heard(const std::string& words) const { return heard_.find(words) != std::string::npos; }

 private:
  std::string heard_;
};

/// Cancels at its third report and later ones.
class CancelledAtTheThird : public SilentProgress {
 public:
  bool cancelled() const override { return reports_ > 2; }

 protected:
  void on_report(std::string_view, std::int64_t, std::int64_t) override { ++reports_; }

 private:
  int reports_ = 0;
};

// A cancelled sweep keeps its finished points. The next attempt passes them on in one call, so that
// iv.csv never holds fewer rows than before. It computes only the others, from the same starts, and
// ends with the bits of an undisturbed run.
TEST(BeamPoint, ASweepResumesWithItsFinishedPoints) {
  const Deck deck = beam_deck("0.2", "[0.1, 0.2, 0.3]",
                              {{"mesh.subbands", "1"}, {"checkpoint_interval_s", "0.0"}});
  SilentProgress silent;
  const auto expected = run_sweep(deck, {.devices = {find_device("cpu")}}, silent);
  const test::TemporaryDirectory directory;
  std::vector<std::vector<int>> first, second;
  const auto noted_in = [](std::vector<std::vector<int>>* calls) {
    return [calls](const std::map<int, PointResult>& points) {
      calls->emplace_back();
      for (const auto& [point, result] : points) calls->back().push_back(point);
    };
  };
  SweepOptions options{.devices = {find_device("cpu")}, .checkpoint_directory = directory.path()};
  options.on_finished = noted_in(&first);
  CancelledAtTheThird cancelled;
  EXPECT_THROW(run_sweep(deck, options, cancelled), Cancelled);
  EXPECT_EQ(first, (std::vector<std::vector<int>>{{0}, {1}}));
  options.on_finished = noted_in(&second);
  Listening resuming;
  const auto resumed = run_sweep(deck, options, resuming);
  EXPECT_TRUE(resuming.heard("2 of 3 points finished"));
  EXPECT_EQ(second, (std::vector<std::vector<int>>{{0, 1}, {2}}));
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(resumed[k].numbers, expected[k].numbers) << k;
    EXPECT_EQ(resumed[k].arrays.at("potential").values, expected[k].arrays.at("potential").values);
  }
  // Another mesh, another window or the other scheme is another sweep.
  for (const auto& [key, value] : {std::pair{"mesh.dh_ev", "0.02"},
                                   {"mesh.nkappa", "9"},
                                   {"mesh.window_ev", "0.5"},
                                   {"run.scheme", "weno"}})
    EXPECT_NE(resume_digest(beam_deck(
                  "0.2", "[0.1, 0.2, 0.3]",
                  {{"mesh.subbands", "1"}, {"checkpoint_interval_s", "0.0"}, {key, value}})),
              resume_digest(deck))
        << key;
}

// The mesh study knows the axes of the scheme.
TEST(BeamPoint, TheMeshStudyStatesTheErrorOfEveryAxis) {
  const Deck deck = beam_deck("0.2", "0.2", {{"mesh.subbands", "1"}, {"run.converge", "true"}});
  SilentProgress silent;
  const auto points_of = [&](const Deck& other, const std::filesystem::path&) {
    return run_sweep(other, {.devices = {find_device("cpu")}}, silent);
  };
  std::vector<PointResult> points = points_of(deck, {});
  StudyRunner runner({}, one_rank(), silent);
  add_mesh_study(deck, points_of, runner, silent, &points);
  const auto& n = points[0].numbers;
  double sum = 0.0;
  for (const char* axis : {"dh", "nkappa", "nx", "nz"}) {
    const std::string name = std::string("mesh_") + axis;
    EXPECT_GT(n.at(name + "_error_a_per_m"), 0.0) << axis;
    EXPECT_LT(n.at(name + "_error_a_per_m"), 0.2 * n.at("current_a_per_m")) << axis;
    sum += n.at(name + "_error_a_per_m");
  }
  EXPECT_NEAR(n.at("mesh_error_a_per_m"), sum, 1e-12);
}

// At V_DS = 1 V rounding keeps the residual of GMRES above its tolerance. The point keeps the laws
// of a converged one nevertheless: its current is level to 1e-6, and its energy to 1e-5 of V_DS·I.
TEST(BeamPoint, OneVoltIsSolvedToRounding) {
  const Deck deck = beam_deck("0.9", "1.0", {{"mesh.dh_ev", "0.05"}, {"mesh.nkappa", "4"}});
  const PointResult point = run(deck)[0];
  const auto& n = point.numbers;
  EXPECT_EQ(point.status, PointStatus::kConverged);
  EXPECT_LT(n.at("current_spread_a_per_m"), 1e-6 * n.at("current_a_per_m"));
  EXPECT_LT(n.at("energy_defect_w_per_m"), 1e-5 * n.at("current_a_per_m"));
}

TEST(BeamPoint, APointThatDoesNotFitIsRefusedWithItsNeed) {
  SilentProgress silent;
  const Deck deck = beam_deck("0.2", "0.2");
  try {
    run_sweep(deck, {.devices = {find_device("cpu")}, .memory_budget_bytes = 1000}, silent);
    FAIL();
  } catch (const OutOfMemory& failure) {
    EXPECT_NE(std::string(failure.what()).find("a bias point"), std::string::npos)
        << failure.what();
  }
}

// The coupled steady state of the reference, V_GS 0.6, V_DS 0.4 V with three subbands, is 1010 A/m
// to ±3 % by the scheme of the paper. Columns of 1 and 0.5 nm agree to 1 %.
TEST(BeamPoint, TheCoupledPointOfTheReferenceIsItsCurrent) {
  if (std::getenv("QUASI_NIGHTLY") == nullptr) GTEST_SKIP() << "set QUASI_NIGHTLY=1 to run it";
  const auto current = [](const char* nx) {
    const PointResult point = run(beam_deck("0.6", "0.4",
                                            {{"mesh.nx", nx},
                                             {"mesh.nz", "33"},
                                             {"mesh.subbands", "3"},
                                             {"mesh.dh_ev", "0.00625"},
                                             {"mesh.nkappa", "24"}}))[0];
    EXPECT_EQ(point.status, PointStatus::kConverged);
    EXPECT_LT(point.numbers.at("ballistic_ratio"), 1.0);
    return point.numbers.at("current_a_per_m");
  };
  const double coarse = current("33"), fine = current("65");
  EXPECT_NEAR(fine / 1010.0, 1.0, 0.03) << coarse << ' ' << fine;
  EXPECT_NEAR(coarse / fine, 1.0, 0.01) << coarse << ' ' << fine;
}

TEST(BeamPoint, TheExampleIsADeck) {
  const Deck deck = read_deck(test::source_dir() / "examples/mosfet/iv_beam.toml", {});
  EXPECT_EQ(deck.run.scheme, StreamingScheme::kBeam);
  EXPECT_EQ(deck.points.size(), 14u);
}

TEST(BeamPoint, TheDeckNamesWhatTheSchemeLacks) {
  for (const auto& [key, value] : {std::pair{"run.mode", "mobility"},
                                   {"output.fields", "[\"pdf_w\"]"},
                                   {"scattering.scheme", "paper"}})
    EXPECT_THROW(beam_deck("0.4", "0.2", {{key, value}}), InvalidInput) << key;
}

}  // namespace
}  // namespace quasi::mosfet
