// Tests the results of a small sweep against evaluations of its raw arrays that share no code with
// the program.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "tests/mosfet/fixtures.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/stopwatch.hpp"
#include "workers/io/hdf5.hpp"
#include "workers/mosfet/mosfet_task.hpp"

namespace quasi::mosfet {
namespace {

constexpr double kT = 8.617333262e-5 * 300.0, kHbar = 0.6582119569, kEOverEps0 = 18.0951282,
                 kCharge = 1.602176634e-19;
constexpr double kHbar2Over2m = 0.0380998212;
constexpr int kNx = 33, kNz = 17;
constexpr double kThreshold = 20.0;  // A/m; it lies within the currents of these points

class Results : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new test::TemporaryDirectory;
    std::ofstream deck(directory_->path() / "deck.toml");
    deck << "parameters = \"paper\"\n"
            "[mesh]\nnx = 33\nnz = 17\nsubbands = 2\nnw = 24\nnphi = 8\nwmax_ev = 0.9\n"
            "[bias]\nvgs = [0.2, 0.3, 0.5, 0.6]\nvds = [0.1, 0.3]\n"
            "[run]\nt_end_fs = 12.0\nwindow_fs = 6.0\nrefresh_steps = "
            "20\n[output]\nthreshold_a_per_m = 20.0\n";
    deck.close();
    RunOptions options;
    options.deck.path = directory_->path() / "deck.toml";
    options.devices = {find_device("cpu"),
                       find_device("cpu")};  // the devices share the chains of a sweep
    options.output_directory = directory_->path();
    SilentProgress silent;
    const auto task = make_mosfet_task();
    ASSERT_GE(task->max_devices(), 2);
    summary_ = task->run(options, silent);
  }
  static void TearDownTestSuite() { delete directory_; }

  static const nlohmann::json& point(std::size_t k) { return summary_["points"][k]; }
  static std::vector<double> array(std::size_t k, const std::string& name) {
    return H5Reader(directory_->path() / "result.h5")
        .doubles("/points/" + std::to_string(k) + "/" + name);
  }

  static inline test::TemporaryDirectory* directory_ = nullptr;
  static inline nlohmann::json summary_;
};

// The slope of the parabola through three points, in Lagrange's form.
double slope_at(const std::map<double, double>& y, double at) {
  std::vector<std::pair<double, double>> v(y.begin(), y.end());
  std::size_t k = 0;
  while (v[k].first != at) ++k;
  k = std::min(std::max<std::size_t>(k, 1), v.size() - 2);
  double slope = 0.0;
  for (std::size_t a = k - 1; a <= k + 1; ++a) {
    double denominator = 1.0, numerator = 0.0;
    for (std::size_t b = k - 1; b <= k + 1; ++b) {
      if (b == a) continue;
      denominator *= v[a].first - v[b].first;
      numerator += at - v[b].first;
    }
    slope += v[a].second * numerator / denominator;
  }
  return slope;
}

// V_GS at which the current passes the threshold, by bisection on ln I between neighbours.
double threshold_of(const std::map<double, double>& current) {
  const auto log_current = [&](double v) {
    const auto high = current.upper_bound(v), low = std::prev(high);
    return std::log(low->second) +
           (v - low->first) / (high->first - low->first) * std::log(high->second / low->second);
  };
  double a = current.begin()->first, b = std::prev(current.end())->first - 1e-12;
  for (int k = 0; k < 80; ++k)
    (log_current(0.5 * (a + b)) < std::log(kThreshold) ? a : b) = 0.5 * (a + b);
  return a;
}

// The engine may name several devices for one sweep; the tests of sweeps cover their use.
TEST_F(Results, ASweepMayHaveSeveralDevices) { EXPECT_GE(make_mosfet_task()->max_devices(), 8); }

TEST_F(Results, OnlySweepsTakeSeveralDevices) {
  RunOptions options;
  options.deck.path = directory_->path() / "deck.toml";
  options.deck.settings = {{"run.mode", "equilibrium"}, {"bias.vds", "0.0"}};
  options.devices = {find_device("cpu"), find_device("cpu")};
  const test::TemporaryDirectory out;
  options.output_directory = out.path();
  SilentProgress silent;
  try {
    make_mosfet_task()->run(options, silent);
    FAIL() << "accepted";
  } catch (const InvalidInput& failure) {
    EXPECT_NE(std::string(failure.what()).find("run.mode 'equilibrium'"), std::string::npos)
        << failure.what();
  }
}

// The pdf has three pairs, two subbands and 33 × 24 × 5 cells. A job of only Schrödinger and
// Poisson has none.
TEST_F(Results, ThePlanHoldsThePdfWhereThereIsOne) {
  DeckSource source{.path = directory_->path() / "deck.toml", .settings = {}};
  const Device cpu = find_device("cpu");
  const auto steady = make_mosfet_task()->validate(source, cpu)["plan"];
  EXPECT_EQ(steady["phase_space_points"], 23760);
  EXPECT_GT(steady["memory_bytes"], 4 * 8 * 23760);
  source.settings = {{"run.mode", "equilibrium"}, {"bias.vds", "0.0"}};
  const auto equilibrium_plan = make_mosfet_task()->validate(source, cpu)["plan"];
  EXPECT_EQ(equilibrium_plan["phase_space_points"], 0);
  EXPECT_LT(equilibrium_plan["memory_bytes"], 8 * 33 * 17 * 100);
}

/// Returns the estimate of a run over the time that it takes.
double estimate_over_time(const std::filesystem::path& deck, const std::vector<Setting>& settings) {
  RunOptions options;
  options.deck.path = deck;
  options.deck.settings = settings;
  options.devices = {find_device("cpu")};
  const auto plan = make_mosfet_task()->validate(options.deck, options.devices[0])["plan"];
  const test::TemporaryDirectory out;
  options.output_directory = out.path();
  SilentProgress silent;
  const Stopwatch clock;
  make_mosfet_task()->run(options, silent);
  return plan["seconds_estimate"].get<double>() / clock.seconds();
}

// The estimate follows from times of this machine, so that only its magnitude can be tested: five
// times in one of three tries, because other programs may slow either of the two. The shortest run
// takes 20 ms.
TEST_F(Results, ThePlanEstimatesTheTimeOfEveryKindOfRun) {
  const std::vector<std::vector<Setting>> runs{
      {{"run.mode", "equilibrium"}, {"bias.vds", "0.0"}, {"bias.vgs", "0.3"}},
      {{"run.mode", "steady"},
       {"run.transport", "drift-diffusion"},
       {"bias.vds", "0.1"},
       {"bias.vgs", "0.3"}},
      {{"run.mode", "steady"}, {"run.scheme", "beam"}, {"bias.vds", "0.1"}, {"bias.vgs", "0.3"}},
      {{"run.mode", "transient"},
       {"run.scheme", "weno"},
       {"run.t_end_fs", "5"},
       {"bias.vgs", "0.3"}},
      {{"run.mode", "steady"},
       {"run.scheme", "beam"},
       {"bias.vds", "0.1"},
       {"bias.vgs", "0.3"},
       {"mesh.nz", "9"},
       {"mesh.dh_ev", "0.025"},
       {"mesh.nkappa", "4"},
       {"small_signal.frequencies_hz", "[1e9, 1e10, 1e11]"}},
  };
  for (const auto& settings : runs) {
    std::vector<double> ratios;
    const auto agrees = [&] {
      ratios.push_back(estimate_over_time(directory_->path() / "deck.toml", settings));
      return ratios.back() > 0.2 && ratios.back() < 5.0;
    };
    EXPECT_TRUE(agrees() || agrees() || agrees())
        << settings[0].value << ": " << testing::PrintToString(ratios);
  }
}

// A run that cannot fit into the host is refused at its start, with the number of validate().
TEST_F(Results, ARunThatNeedsTooMuchMemoryIsRefusedWithItsNeed) {
  RunOptions options;
  options.deck.path = directory_->path() / "deck.toml";
  options.deck.settings = {
      {"mesh.nx", "2049"}, {"mesh.nw", "4096"}, {"mesh.nphi", "256"}, {"mesh.subbands", "12"}};
  options.devices = {find_device("cpu")};
  const test::TemporaryDirectory out;
  options.output_directory = out.path();
  const auto plan = make_mosfet_task()->validate(options.deck, options.devices[0])["plan"];
  const std::int64_t need_mib = plan["memory_bytes"].get<std::int64_t>() >> 20;
  ASSERT_GT(need_mib, 1 << 20);
  EXPECT_FALSE(plan.contains("seconds_estimate"));
  SilentProgress silent;
  try {
    make_mosfet_task()->run(options, silent);
    FAIL() << "accepted";
  } catch (const OutOfMemory& failure) {
    EXPECT_NE(std::string(failure.what()).find("needs " + std::to_string(need_mib) + " MiB"),
              std::string::npos)
        << failure.what();
  }
}

// The points of the fixture have not become steady, so that they define no figure of a steady
// curve.
TEST_F(Results, UnsteadyPointsDefineNoFigures) {
  for (const auto& curve : summary_["derived"]["curves"])
    for (const char* name :
         {"threshold_v", "threshold_extrapolated_v", "subthreshold_swing_mv_per_decade"})
      EXPECT_FALSE(curve.contains(name)) << name;
  EXPECT_FALSE(summary_["derived"].contains("dibl_mv_per_v"));
  EXPECT_NE(make_mosfet_task()->table(summary_).find("no swing: needs two resolved points"),
            std::string::npos);
}

// Steady points of the beam scheme on the fixture's device define all figures.
TEST_F(Results, DerivedFiguresFollowFromTheCurve) {
  RunOptions options;
  options.deck.path = directory_->path() / "deck.toml";
  options.deck.settings = {{"run.scheme", "beam"},
                           {"mesh.dh_ev", "0.025"},
                           {"mesh.nkappa", "4"},
                           {"bias.vgs", "[0.1, 0.2, 0.3, 0.5, 0.6]"}};
  options.devices = {find_device("cpu")};
  const test::TemporaryDirectory out;
  options.output_directory = out.path();
  SilentProgress silent;
  const nlohmann::json summary = make_mosfet_task()->run(options, silent);
  const auto along = [&](double vds, const std::string& name) {
    std::map<double, double> values;
    for (const auto& p : summary["points"])
      if (p["vds_v"] == vds) values[p["vgs_v"].get<double>()] = p[name].get<double>();
    return values;
  };
  const auto& curves = summary["derived"]["curves"];
  ASSERT_EQ(curves.size(), 2u);
  std::map<double, double> thresholds;
  for (const auto& curve : curves) {
    const double vds = curve["vds_v"];
    const auto current = along(vds, "current_a_per_m"), charge = along(vds, "gate_charge_per_nm"),
               barrier = along(vds, "barrier_height_ev");
    double swing = 1e9, steepest = 0.0, tangent = 0.0;
    std::size_t k = 0;
    for (auto at = current.begin(); at != current.end(); ++at, ++k) {
      const double gm = slope_at(current, at->first);
      EXPECT_NEAR(curve["transconductance_s_per_m"][k].get<double>(), gm, 1e-9 * std::fabs(gm));
      EXPECT_NEAR(curve["gate_capacitance_f_per_m"][k].get<double>(),
                  slope_at(charge, at->first) * 1e9 * kCharge, 1e-18);
      EXPECT_GT(curve["gate_capacitance_f_per_m"][k].get<double>(), 0.0);
      if (gm > steepest) steepest = gm, tangent = at->first - at->second / gm - 0.5 * vds;
      if (at != current.begin() && barrier.at(at->first) > 3.0 * kT)
        swing = std::min(swing, 1e3 * (at->first - std::prev(at)->first) /
                                    std::log10(at->second / std::prev(at)->second));
    }
    // The swing of the equilibrium's barriers is 98 mV/decade between 0 and 0.1 V on a fine mesh.
    EXPECT_NEAR(swing, 105.0, 10.0);
    EXPECT_NEAR(curve["subthreshold_swing_mv_per_decade"].get<double>(), swing, 1e-9 * swing);
    EXPECT_GT(curve["subthreshold_swing_error_mv_per_decade"].get<double>(), 0.0);
    EXPECT_NEAR(curve["threshold_extrapolated_v"].get<double>(), tangent, 1e-9);
    EXPECT_NEAR(curve["threshold_v"].get<double>(), thresholds[vds] = threshold_of(current), 1e-9);
    EXPECT_GT(curve["threshold_error_v"].get<double>(), 0.0);
  }
  EXPECT_NEAR(summary["derived"]["dibl_mv_per_v"].get<double>(),
              1e3 * (thresholds[0.1] - thresholds[0.3]) / 0.2, 1e-6);
  const H5Reader file(out.path() / "result.h5");
  EXPECT_EQ(file.text_attribute("/derived/0/threshold_error", "units"), "V");
  EXPECT_EQ(file.text_attribute("/derived/dibl_error", "units"), "mV/V");
}

// Gauss' law at the two gates: ε_R (V_gate − V)/Δz through the oxide, and the stray field along x
// at their edges.
TEST_F(Results, TheGateChargeIsTheFieldInTheOxide) {
  const double dx = 32.0 / (kNx - 1), dz = 8.0 / (kNz - 1);
  for (const std::size_t k : {0u, 7u}) {
    const auto v = array(k, "potential");
    double charge = 0.0;
    for (int i = 11; i <= 21; ++i)
      charge += 3.9 * dx *
                (v[i * kNz] - v[i * kNz + 1] + v[i * kNz + kNz - 1] - v[i * kNz + kNz - 2]) / dz;
    for (const auto& [edge, out] : {std::pair{11, 10}, {21, 22}})
      for (const int j : {0, kNz - 1})
        charge += 3.9 * 0.5 * dz * (v[edge * kNz + j] - v[out * kNz + j]) / dx;
    EXPECT_NEAR(point(k)["gate_charge_per_nm"].get<double>(), charge / kEOverEps0, 1e-8)
        << k;  // e/ε0 above has nine digits
  }
}

// I_bal from the levels in the file. A parabola gives the top, and Simpson's rule in the wave
// vector gives the integral over k_y.
TEST_F(Results, TheBallisticCurrentFollowsFromTheLevels) {
  const double my[] = {0.19, 0.98, 0.19};
  for (std::size_t k = 0; k < 8; ++k) {
    const auto level = array(k, "subband_energy");  // [3][2][33]
    double sum = 0.0;
    for (int a = 0; a < 6; ++a) {
      const double* e = &level[static_cast<std::size_t>(a) * kNx];
      const int at = static_cast<int>(std::max_element(e, e + kNx) - e);
      double top = e[at];
      if (at > 0 && at < kNx - 1) {
        const double c2 = 0.5 * (e[at + 1] + e[at - 1]) - e[at], c1 = 0.5 * (e[at + 1] - e[at - 1]);
        if (c2 < 0.0) top -= c1 * c1 / (4.0 * c2);
      }
      const int n = 20000;
      const double largest = 6.0;  // nm⁻¹
      double integral = 0.0;
      for (int q = 0; q <= n; ++q) {
        const double ky = -largest + 2.0 * largest * q / n;
        const double energy = std::sqrt(1.0 + 4.0 * 0.5 * kHbar2Over2m * ky * ky / my[a / 2]) -
                              1.0;  // (…)/(2α), α = ½
        integral += (q == 0 || q == n ? 1.0 : q % 2 == 1 ? 4.0 : 2.0) * std::exp(-energy / kT);
      }
      integral *= 2.0 * largest / n / 3.0;
      const double vds = point(k)["vds_v"];
      sum += 2.0 * 2.0 * kT / (4.0 * M_PI * M_PI * kHbar) *
             (std::exp(-top / kT) - std::exp((-vds - top) / kT)) * integral;
    }
    const double expected = sum * 1.602176634e5, found = point(k)["ballistic_a_per_m"];
    EXPECT_NEAR(found / expected, 1.0, 1e-6) << k;
    EXPECT_NEAR(point(k)["ballistic_ratio"].get<double>(),
                point(k)["current_a_per_m"].get<double>() / found, 1e-12);
  }
}

// The name of a number ends in its units, the file states the units beside it, and the two agree.
TEST_F(Results, EveryNumberHasItsUnits) {
  const H5Reader file(directory_->path() / "result.h5");
  const std::map<std::string, std::string> known{{"current_a_per_m", "A/m"},
                                                 {"current_spread_a_per_m", "A/m"},
                                                 {"current_spread_with_contacts_a_per_m", "A/m"},
                                                 {"current_drift_a_per_m", "A/m"},
                                                 {"window_fs", "fs"},
                                                 {"gate_charge_per_nm", "e/nm"},
                                                 {"barrier_top_nu0_ev", "eV"},
                                                 {"steps", "1"},
                                                 {"ballistic_ratio", "1"}};
  for (const auto& [name, units] : known)
    EXPECT_EQ(file.text_attribute("/points/0/numbers/" + name, "units"), units) << name;
  for (const std::string& name : file.children("/points/0/numbers"))
    EXPECT_NE(file.text_attribute("/points/0/numbers/" + name, "units"), "") << name;
}

// The means weight every subband with its density. No electron carries less than half kT.
TEST_F(Results, MeansAreWeightedWithTheDensity) {
  for (std::size_t k = 0; k < 8; ++k) {
    const auto sheet = array(k, "sheet_density"), velocity = array(k, "velocity"),
               mean = array(k, "velocity_mean");
    const auto energy = array(k, "energy_mean");
    for (int i = 0; i < kNx; ++i) {
      double flux = 0.0, density = 0.0;
      for (int a = 0; a < 6; ++a) {
        flux += sheet[a * kNx + i] * velocity[a * kNx + i];
        density += sheet[a * kNx + i];
      }
      EXPECT_NEAR(mean[i], flux / density, 1e-12);
      EXPECT_GT(energy[i], 0.5 * kT);
    }
  }
}

// The summary of a job with --converge has the time of all points and that of the other meshes, and
// the table has the time of a point with its error.
TEST(MeshStudyTime, IsStatedInSummaryAndTable) {
  const test::TemporaryDirectory directory;
  std::ofstream(directory.path() / "deck.toml")
      << "[mesh]\nnx = 33\nnz = 17\nsubbands = 1\ndh_ev = 0.05\nnkappa = 4\n"
         "[bias]\npoints = [[0.2, 0.2], [0.3, 0.2]]\n"
         "[run]\nscheme = \"beam\"\nconverge = true\n";
  RunOptions options;
  options.deck.path = directory.path() / "deck.toml";
  options.devices = {find_device("cpu")};
  options.output_directory = directory.path();
  SilentProgress silent;
  const nlohmann::json summary = make_mosfet_task()->run(options, silent);
  const double points_s = summary.at("seconds").at("points"),
               errors_s = summary.at("seconds").at("mesh_errors");
  EXPECT_GT(points_s, 0.0);
  EXPECT_GT(errors_s, 0.0);
  char line[100];
  std::snprintf(line, sizeof line, "2 points with mesh errors: %.3g s, of which %.3g s",
                points_s + errors_s, errors_s);
  const std::string table = make_mosfet_task()->table(summary);
  EXPECT_NE(table.find(line), std::string::npos) << table;
  std::snprintf(line, sizeof line, "; %.3g s a point", 0.5 * (points_s + errors_s));
  EXPECT_NE(table.find(line), std::string::npos) << table;
}

}  // namespace
}  // namespace quasi::mosfet
