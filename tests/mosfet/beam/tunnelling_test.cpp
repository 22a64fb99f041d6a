// Tests the current that tunnels from source to drain against closed forms.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/mosfet/fixtures.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/io/hdf5.hpp"
#include "workers/mosfet/mosfet_task.hpp"
#include "workers/mosfet/physics/working_units.hpp"
#include "workers/mosfet/solver/beam/source_drain_tunnelling.hpp"

namespace quasi::mosfet {
namespace {

constexpr double kKt_ev = 0.025851999786435, kMass_m0 = 0.19;

/// One level between flat ends, with the grid of the solver.
struct Barrier {
  /// @param height_of  ε at x, which is 0 in the middle
  template <typename Height>
  Barrier(double length_nm, double dx_nm, double alpha_per_ev, const Height& height_of)
      : levels{.valleys = {{kMass_m0, kMass_m0, 0.98, 0.0}}, .subbands = 1} {
    levels.nx = static_cast<int>(std::lround(length_nm / dx_nm)) + 1;
    for (int i = 0; i < levels.nx; ++i)
      levels.edge_ev.push_back(height_of(i * dx_nm - 0.5 * length_nm));
    grid = make_beam_grid({.dh_ev = 0.00625, .n_kappa = 24}, levels, dx_nm, alpha_per_ev,
                          {.kt_ev = kKt_ev});
  }

  /// Tunnelled current with the source in equilibrium and an empty drain, over the current that
  /// passes above the barrier.
  double share(double top_ev) const {
    std::vector<double> mean(static_cast<std::size_t>(levels.nx) * grid.n_h, 0.0);
    std::fill(mean.begin(), mean.begin() + static_cast<long>(mean.size() / 2), 1.0);
    const BeamFactors factors = make_beam_factors(levels);
    // Landauer's current for parabolic bands: ∫dκ e^{−κ²/kT} = √(πkT)/2.
    const double above = 2.0 * factors.density[0] * factors.speed[0] * kKt_ev *
                         std::exp(-top_ev / kKt_ev) * 0.5 * std::sqrt(units::kPi * kKt_ev);
    return source_drain_tunnelling(grid, levels, mean).electrons / above;
  }

  BeamLevels levels;
  BeamGrid grid;
};

Barrier parabola(double height_ev, double half_width_nm, double dx_nm) {
  return Barrier(4.0 * half_width_nm, dx_nm, 0.0, [=](double x_nm) {
    return std::max(0.0, height_ev * (1.0 - x_nm * x_nm / (half_width_nm * half_width_nm)));
  });
}

/// ħω of the parabola V₀(1 − x²/a²).
double quantum_ev(double height_ev, double half_width_nm) {
  return kHbar_ev_fs * std::sqrt(2.0 * height_ev / (kMass_m0 * kElectronMass_ev_fs2_nm2)) /
         half_width_nm;
}

// A rectangle: ∫|k_x|dx = L √(2m(V₀ − E))/ħ for parabolic bands, and with Kane's |γ| in place of
// V₀ − E. The ramps of one cell at both ends add less than one cell.
TEST(SourceDrainTunnelling, TheActionOfARectangleIsItsClosedForm) {
  constexpr double kLength_nm = 8.0, kDx_nm = 0.02, kTop_ev = 0.3;
  for (const double alpha_per_ev : {0.0, 0.5}) {
    const Barrier barrier(20.0, kDx_nm, alpha_per_ev, [](double x_nm) {
      return std::fabs(x_nm) <= 0.5 * kLength_nm ? kTop_ev : 0.0;
    });
    for (const double h_ev : {0.05, 0.2, 0.29})
      for (const double kappa : {0.0, 0.1}) {
        const ForbiddenRegion region =
            forbidden_region(barrier.grid, barrier.levels.edge_ev.data(), kMass_m0, h_ev, kappa);
        const double gamma = (h_ev - kTop_ev) * (1.0 + alpha_per_ev * (h_ev - kTop_ev));
        const double exact =
            kLength_nm * std::sqrt((kappa * kappa - gamma) * kMass_m0 / kHbar2Over2m0_ev_nm2);
        EXPECT_NEAR(region.action / exact, 1.0, 2.0 * kDx_nm / kLength_nm) << h_ev << ' ' << kappa;
        EXPECT_EQ(region.drain_node, barrier.levels.nx - 1 - region.source_node);
      }
  }
}

// A parabola: T = e^{−2π(V₀−E)/ħω}. Maxwell's statistics give the share as a closed form. The limit
// of 1 % covers Δx of 0.25 nm.
TEST(SourceDrainTunnelling, TheShareOfAParabolaIsItsClosedForm) {
  for (const double half_width_nm : {10.0, 20.0, 40.0}) {
    constexpr double kTop_ev = 0.25;
    const double rate_per_ev = 2.0 * units::kPi / quantum_ev(kTop_ev, half_width_nm);
    const double exact =
        -std::expm1(-kTop_ev * (rate_per_ev - 1.0 / kKt_ev)) / (rate_per_ev * kKt_ev - 1.0);
    EXPECT_NEAR(parabola(kTop_ev, half_width_nm, 0.25).share(kTop_ev) / exact, 1.0, 0.01)
        << half_width_nm;
  }
}

// The share vanishes with the length as ħω/2πkT: a channel of twice the length has about half.
TEST(SourceDrainTunnelling, VanishesForALongChannel) {
  const double short_share = parabola(0.25, 10.0, 0.5).share(0.25),
               long_share = parabola(0.25, 80.0, 0.5).share(0.25);
  EXPECT_GT(short_share, 0.3);
  EXPECT_LT(long_share, 0.05);
}

// Equal occupations on both sides carry nothing, to the bit.
TEST(SourceDrainTunnelling, NothingTunnelsInEquilibrium) {
  const Barrier barrier = parabola(0.2, 8.0, 0.5);
  const std::vector<double> mean(static_cast<std::size_t>(barrier.levels.nx) * barrier.grid.n_h,
                                 1.0);
  EXPECT_EQ(source_drain_tunnelling(barrier.grid, barrier.levels, mean).electrons, 0.0);
}

nlohmann::json run(const test::TemporaryDirectory& directory, const std::string& tunnelling,
                   std::string* table) {
  std::ofstream(directory.path() / "deck.toml")
      << "parameters = \"paper\"\n"
         "[mesh]\nnx = 33\nnz = 17\nsubbands = 1\ndh_ev = 0.025\nnkappa = 4\n"
         "[bias]\nvgs = 0.0\nvds = 0.2\n[run]\nscheme = \"beam\"\n" +
             tunnelling;
  RunOptions options;
  options.deck.path = directory.path() / "deck.toml";
  options.devices = {find_device("cpu")};
  options.output_directory = directory.path();
  SilentProgress silent;
  const auto task = make_mosfet_task();
  const nlohmann::json summary = task->run(options, silent);
  *table = task->table(summary);
  return summary["points"][0];
}

// Table, CSV, summary and result.h5 of a job state the current that tunnels. The current without it
// is that of a job without the key.
TEST(SourceDrainTunnelling, IsStatedByEveryOutput) {
  const test::TemporaryDirectory directory, other;
  std::string table, plain_table;
  const nlohmann::json point = run(directory, "tunnelling = true\n", &table),
                       plain = run(other, "", &plain_table);
  const double tunnelled = point["tunnel_current_a_per_m"], current = point["current_a_per_m"];
  EXPECT_GT(tunnelled, 0.0);
  EXPECT_NEAR(current - tunnelled, plain["current_a_per_m"].get<double>(), 1e-12 * current);
  EXPECT_NEAR(point["tunnel_share"].get<double>(), tunnelled / current, 1e-12);
  EXPECT_EQ(point["status"], "converged");
  EXPECT_NEAR(point["ballistic_ratio"].get<double>(), plain["ballistic_ratio"].get<double>(),
              1e-12);
  EXPECT_NE(table.find("tunnelling carries "), std::string::npos) << table;
  EXPECT_EQ(plain_table.find("tunnelling"), std::string::npos);
  EXPECT_FALSE(plain.contains("tunnel_share"));
  const H5Reader file(directory.path() / "result.h5");
  EXPECT_EQ(file.doubles("/points/0/current_x")[17], current);
  EXPECT_EQ(file.number("/points/0/numbers/tunnel_share"), point["tunnel_share"].get<double>());
  std::ifstream csv(directory.path() / "iv.csv");
  const std::string text{std::istreambuf_iterator<char>(csv), {}};
  EXPECT_NE(text.find(",tunnel_share,status\n"), std::string::npos);
}

TEST(SourceDrainTunnelling, NeedsTheBeamScheme) {
  try {
    test::default_deck(33, 17, {{"run.tunnelling", "true"}});
    FAIL();
  } catch (const InvalidInput& refused) {
    EXPECT_NE(std::string(refused.what()).find("run.tunnelling"), std::string::npos)
        << refused.what();
  }
}

}  // namespace
}  // namespace quasi::mosfet
