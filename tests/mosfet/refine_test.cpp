#include "workers/mosfet/solver/transport/refine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/mosfet/fixtures.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/mosfet/input/make_structure.hpp"
#include "workers/mosfet/solver/sweep/mesh_study.hpp"
#include "workers/mosfet/solver/sweep/sweep.hpp"
#include "workers/mosfet/solver/transport/transport_setup.hpp"

namespace quasi::mosfet {
namespace {

Deck steady_deck(const std::vector<Setting>& settings) {
  std::vector<Setting> all{{"mesh.subbands", "1"},     {"mesh.nw", "64"},   {"mesh.nphi", "16"},
                           {"mesh.wmax_ev", "0.9"},    {"bias.vgs", "0.5"}, {"bias.vds", "0.1"},
                           {"run.refresh_steps", "20"}};
  all.insert(all.end(), settings.begin(), settings.end());
  return test::default_deck(33, 17, all);
}

// A quasi-equilibrium of the coarse mesh becomes that of the fine one. The occupation is a
// Maxwellian in w, which log-linear interpolation keeps to round-off. The sheet density of every
// state and column is the coarse one.
TEST(Refine, KeepsAMaxwellianAndItsDensity) {
  const Deck fine_deck = steady_deck({}), coarse_deck = *coarser_deck(fine_deck);
  EXPECT_EQ(coarse_deck.mesh.nw, 32);
  EXPECT_EQ(coarse_deck.mesh.nphi, 8);
  EXPECT_EQ(coarse_deck.mesh.nx, 33);  // 16 cells of 2 nm miss the gate edges at 11 and 21 nm
  const auto start = [](const Deck& deck, TransportProblem* problem, PointBoundary* boundary) {
    const Structure s = make_structure(deck);
    const Equilibrium contact = solve_contact(deck, s, 0);
    *problem = make_transport_problem(deck, s);
    *boundary = make_point_boundary(deck, *problem, deck.points[0], contact, contact);
    return make_start(deck, *problem, deck.points[0], *boundary, {contact, contact},
                      solve_equilibrium(deck, s, deck.points[0], contact, contact));
  };
  TransportProblem coarse, fine;
  PointBoundary coarse_boundary, fine_boundary;
  const PointState from = start(coarse_deck, &coarse, &coarse_boundary);
  const PointState expected = start(fine_deck, &fine, &fine_boundary);
  const PointState found =
      refine_state(coarse, from, coarse_boundary.pdf_scale, fine, fine_boundary.pdf_scale);
  ASSERT_EQ(found.pdf.size(), expected.pdf.size());
  for (std::size_t k = 0; k < found.pdf.size(); ++k)
    EXPECT_NEAR(found.pdf[k] / expected.pdf[k], 1.0, 1e-9);
  for (std::size_t k = 0; k < found.potential_v.size(); ++k)
    EXPECT_NEAR(found.potential_v[k], expected.potential_v[k], 1e-9);
}

// A steady state reached through the coarse mesh has an equal current, in no more steps. Here the
// numbers of steps are equal, because the averaging windows of the criterion decide them: 3,600
// steps on a GPU.
TEST(Refine, ACoarseStartEndsInTheSameSteadyState) {
  if (std::getenv("QUASI_NIGHTLY") == nullptr) GTEST_SKIP() << "set QUASI_NIGHTLY=1 to run it";
  const std::vector<Setting> run{{"mesh.nx", "65"},          {"mesh.nz", "33"},
                                 {"mesh.subbands", "3"},     {"run.refresh_steps", "200"},
                                 {"bias.vgs", "0.6"},        {"bias.vds", "0.4"},
                                 {"run.steady_tol", "3e-3"}, {"run.t_end_fs", "800.0"},
                                 {"run.window_fs", "100.0"}};
  std::vector<Setting> quick(run);
  quick.push_back({"run.coarse_start", "true"});
  SilentProgress silent;
  const SweepOptions options{.devices = {find_device("auto")}};
  const PointResult direct = run_sweep(steady_deck(run), options, silent)[0],
                    via = run_sweep(steady_deck(quick), options, silent)[0];
  EXPECT_EQ(via.status, PointStatus::kConverged);
  EXPECT_NEAR(via.numbers.at("current_a_per_m") / direct.numbers.at("current_a_per_m"), 1.0, 5e-3);
  EXPECT_LE(via.numbers.at("steps"), direct.numbers.at("steps"));
}

// The coarse start is the default. It applies to the first point of a chain, a stopped run finds it
// again, and later points start from their neighbour.
TEST(Refine, ACoarseStartIsFoundAgain) {
  const std::vector<Setting> both{
      {"bias.vds", "[0.1, 0.2]"}, {"run.t_end_fs", "4.0"}, {"run.window_fs", "1.0"}};
  std::vector<Setting> plain(both);
  plain.push_back({"run.coarse_start", "false"});
  const Deck deck = steady_deck(both);
  EXPECT_TRUE(deck.run.coarse_start);
  const Device cpu = find_device("cpu");
  /// Cancels at its third query, or never.
  class Stopping : public SilentProgress {
   public:
    explicit Stopping(int looks) : left_(looks) {}
    bool cancelled() const override { return left_-- == 0; }
    bool checkpoint_wanted() override { return true; }

   private:
    mutable int left_;
  };
  SilentProgress silent;
  const auto expected = run_sweep(deck, {.devices = {cpu}}, silent);
  const test::TemporaryDirectory directory;
  int stops = 0;
  std::vector<PointResult> found;
  for (int looks = 3; found.empty(); looks += 5) try {
      Stopping progress(looks);
      found =
          run_sweep(deck, {.devices = {cpu}, .checkpoint_directory = directory.path()}, progress);
    } catch (const Cancelled&) {
      ASSERT_LT(++stops, 60);
    }
  EXPECT_GE(stops, 2);
  for (std::size_t k = 0; k < 2; ++k) {
    EXPECT_EQ(found[k].numbers, expected[k].numbers);
    EXPECT_EQ(found[k].arrays.at("potential").values, expected[k].arrays.at("potential").values);
  }
  EXPECT_NE(run_sweep(steady_deck(plain), {.devices = {cpu}}, silent)[0].numbers.at(
                "current_mean_a_per_m"),
            expected[0].numbers.at("current_mean_a_per_m"));
}

// Currents I + c h^p have the error c h^p, where the order p is observed.
TEST(MeshStudy, TheObservedOrderGivesTheError) {
  for (const double order : {0.6, 1.0, 2.0}) {
    const double c = 3.0;
    const AxisError found =
        axis_error(100.0 + c, 100.0 + c * std::pow(2.0, order), 100.0 + c * std::pow(4.0, order));
    EXPECT_NEAR(*found.order, order, 1e-12);
    EXPECT_NEAR(found.error, c, 1e-12);
  }
  // Fourth order counts as second order, which overestimates the error.
  EXPECT_NEAR(axis_error(100.0, 116.0, 372.0).error, 16.0 / 3.0, 1e-12);
  // A slow sequence counts as one of order ½.
  EXPECT_NEAR(axis_error(100.0, 101.0, 102.0).error, 1.0 / (std::sqrt(2.0) - 1.0), 1e-12);
  // A sequence that turns around has no order, and its error is its largest step.
  EXPECT_FALSE(axis_error(100.0, 128.0, 117.0).order);
  EXPECT_EQ(axis_error(100.0, 128.0, 117.0).error, 28.0);
  EXPECT_FALSE(axis_error(100.0, 103.0, {}).order);
  EXPECT_EQ(axis_error(100.0, 103.0, {}).error, 1.0);
}

/// Returns points whose current has a known error of every axis, and counts the cells of x.
std::vector<PointResult> model_points(const Deck& deck, std::vector<int>* nx) {
  nx->push_back(deck.mesh.nx);
  const Mesh& m = deck.mesh;
  PointResult point;
  point.numbers["current_a_per_m"] = 500.0 + 40.0 * std::pow(64.0 / m.nw, 1.0) +
                                     8.0 * std::pow(32.0 / (m.nx - 1), 2.0) +
                                     0.5 * std::pow(16.0 / (m.nz - 1), 2.0);
  return {point};
}

// The default device on 33 columns cannot be halved, because cells of 2 nm miss the gate edges. Its
// axis x is doubled, and no axis is missing in the sum.
TEST(MeshStudy, AnAxisThatCannotBeHalvedIsDoubled) {
  const Deck deck = steady_deck({{"run.converge", "true"}});
  SilentProgress silent;
  std::vector<int> nx;
  std::vector<PointResult> points = model_points(deck, &nx);
  StudyRunner runner({}, one_rank(), silent);
  add_mesh_study(
      deck, [&](const Deck& other, const auto&) { return model_points(other, &nx); }, runner,
      silent, &points);
  EXPECT_EQ(std::count(nx.begin(), nx.end(), 65), 1);
  const auto& n = points[0].numbers;
  EXPECT_NEAR(n.at("mesh_nx_error_a_per_m"), 8.0, 1e-9);
  EXPECT_NEAR(n.at("mesh_nw_error_a_per_m"), 40.0, 1e-9);
  EXPECT_NEAR(n.at("mesh_nw_order"), 1.0, 1e-9);
  EXPECT_FALSE(n.contains("mesh_nx_order"));
  EXPECT_NEAR(n.at("mesh_error_a_per_m"), 8.0 + 40.0 + 0.5, 1e-9);
}

// An axis that can be neither halved nor doubled leaves no sum.
TEST(MeshStudy, AMissingAxisLeavesNoSum) {
  // 529 nodes in x miss the gate edges, and 2113 are more than the deck may have.
  const Deck deck = steady_deck({{"run.converge", "true"}, {"mesh.nx", "1057"}});
  SilentProgress silent;
  std::vector<int> nx;
  std::vector<PointResult> points = model_points(deck, &nx);
  StudyRunner runner({}, one_rank(), silent);
  add_mesh_study(
      deck, [&](const Deck& other, const auto&) { return model_points(other, &nx); }, runner,
      silent, &points);
  EXPECT_FALSE(points[0].numbers.contains("mesh_error_a_per_m"));
  EXPECT_TRUE(points[0].numbers.contains("mesh_nw_error_a_per_m"));
}

// Small-signal figures with a known error of every axis. ΔH and κ are halved twice. x and z are
// halved once, since a quarter of 64 cells misses the gate edges and a quarter of 16 the oxides.
// The current, whose error is known too, does not depend on the frequencies. Sweeps of the study
// have the two lowest frequencies and no noise.
TEST(MeshStudy, SmallSignalFiguresHaveMeshErrors) {
  const Deck deck = test::default_deck(65, 17,
                                       {{"run.scheme", "beam"},
                                        {"mesh.dh_ev", "0.0125"},
                                        {"mesh.nkappa", "16"},
                                        {"run.converge", "true"},
                                        {"bias.points", "[[0.4, 0.3], [0.5, 0.3]]"},
                                        {"small_signal.frequencies_hz", "[0.0, 1e9, 1e10, 1e12]"},
                                        {"small_signal.noise", "true"}});
  // Errors of the axes at the mesh of the deck, of orders two, one, two and two.
  const auto error = [](const Mesh& m, double dh, double kappa, double x, double z) {
    return dh * std::pow(m.dh_ev / 0.0125, 2.0) + kappa * (16.0 / m.n_kappa) +
           x * std::pow(64.0 / (m.nx - 1), 2.0) + z * std::pow(16.0 / (m.nz - 1), 2.0);
  };
  SilentProgress silent;
  int sweeps = 0;
  const auto points_of = [&](const Deck& other, const auto&) {
    EXPECT_EQ(other.small_signal.frequencies_hz, (std::vector<double>{0.0, 1e9}));
    EXPECT_FALSE(other.small_signal.noise);
    ++sweeps;
    std::vector<PointResult> points(2);
    for (PointResult& point : points) {
      point.numbers["current_a_per_m"] = 500.0 + error(other.mesh, 4.0, 3.0, 2.0, 1.0);
      point.numbers["transconductance_s_per_m"] =
          9000.0 + error(other.mesh, 40.0, 30.0, 20.0, 10.0);
      point.numbers["output_conductance_s_per_m"] = 700.0 - error(other.mesh, 8.0, 6.0, 4.0, 2.0);
      point.numbers["gate_capacitance_f_per_m"] = 1e-9;
    }
    points[0].numbers["cutoff_extrapolated_hz"] = 1e12 + error(other.mesh, 0.0, 0.0, 0.0, 1e10);
    return points;
  };
  std::vector<PointResult> points = points_of(
      [&] {
        Deck lowest = deck;
        lowest.small_signal = {.frequencies_hz = {0.0, 1e9}, .noise = false};
        return lowest;
      }(),
      0);
  StudyRunner runner({}, one_rank(), silent);
  add_mesh_study(deck, points_of, runner, silent, &points);
  EXPECT_GT(sweeps, 5);
  for (const PointResult& point : points) {
    EXPECT_NEAR(point.numbers.at("mesh_error_a_per_m"), 10.0, 1e-9);
    EXPECT_NEAR(point.numbers.at("transconductance_mesh_error_s_per_m"), 100.0, 1e-9);
    EXPECT_NEAR(point.numbers.at("output_conductance_mesh_error_s_per_m"), 20.0, 1e-9);
    EXPECT_NEAR(point.numbers.at("gate_capacitance_mesh_error_f_per_m"), 0.0, 1e-20);
  }
  // The second point has no f_T on any mesh, so that it has no error of it.
  EXPECT_NEAR(points[0].numbers.at("cutoff_extrapolated_mesh_error_hz"), 1e10, 1.0);
  EXPECT_FALSE(points[1].numbers.contains("cutoff_extrapolated_mesh_error_hz"));
}

// A sweep with every axis refined has one current per axis.
TEST(MeshStudy, StatesTheErrorOfEveryAxis) {
  const Deck deck = steady_deck({{"mesh.nw", "24"},
                                 {"run.t_end_fs", "2.0"},
                                 {"run.window_fs", "1.0"},
                                 {"run.converge", "true"}});
  SilentProgress silent;
  const auto points_of = [&](const Deck& other, const std::filesystem::path& directory) {
    return run_sweep(other, {.devices = {find_device("cpu")}, .checkpoint_directory = directory},
                     silent);
  };
  std::vector<PointResult> points = points_of(deck, {});
  StudyRunner runner({}, one_rank(), silent);
  add_mesh_study(deck, points_of, runner, silent, &points);
  const auto& n = points[0].numbers;
  double sum = 0.0;
  for (const char* axis : {"nw", "nphi", "nx", "nz"}) {
    const std::string name = std::string("mesh_") + axis;
    ASSERT_TRUE(n.contains(name + "_current_a_per_m")) << axis;
    const double factor = std::string(axis) == "nx" ? 4.0 / 3.0 : 1.0 / 3.0;
    EXPECT_NEAR(n.at(name + "_error_a_per_m"),
                std::fabs(n.at("current_a_per_m") - n.at(name + "_current_a_per_m")) * factor,
                1e-12);
    EXPECT_GT(n.at(name + "_error_a_per_m"), 0.0);
    sum += n.at(name + "_error_a_per_m");
  }
  EXPECT_NEAR(n.at("mesh_error_a_per_m"), sum, 1e-12);
}

}  // namespace
}  // namespace quasi::mosfet
