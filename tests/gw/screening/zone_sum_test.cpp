// Sums over the q-grid near q → 0 by two rules: the change that a job states is the difference of
// its energies, and a monolayer's energies converge with the k-grid.

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/gw/support/local_crystal.hpp"
#include "workers/backend/device/device.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"

namespace quasi::gw {
namespace {

/// Σ of the highest occupied and the lowest empty band at Γ, and the change of the first by the
/// other rule as the job states it.
struct EdgesOfSigma {
  double top_ev = 0.0, bottom_ev = 0.0, stated_change_ev = 0.0;
  double gap_ev() const { return bottom_ev - top_ev; }
};

EdgesOfSigma edges_of(const Calculation& run) {
  EdgesOfSigma edges;
  for (std::size_t i = 0; i < run.quasiparticles.size(); ++i) {
    const Quasiparticle& qp = run.quasiparticles[i];
    if (qp.band == run.field.n_occupied + 1) edges.bottom_ev = qp.sigma_ev;
    if (qp.band != run.field.n_occupied) continue;
    edges.top_ev = qp.sigma_ev;
    edges.stated_change_ev = run.zone_sum_change_ev.at(i);
  }
  return edges;
}

EdgesOfSigma edges_of_crystal(const std::string& name, const std::string& rule) {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  const Deck deck =
      parse_deck("self_test = false\n[meanfield]\nsource = \"epm\"\ncrystal = \"" + name +
                     "\"\ncutoff_ry = 4.0\nbands = 18\nk_grid = [3, 3, 3]\n"
                     "[epsilon]\ncutoff_ry = 2.0\n[sigma]\nkpoints = [[0, 0, 0]]\n"
                     "band_min = 2\nband_max = 7\n[coulomb]\nzone_sum = \"" +
                     rule + "\"\n",
                 {}, "test", ".");
  return edges_of(run_calculation(deck, *kernels, std::int64_t{1} << 30, silent));
}

EdgesOfSigma edges_of_monolayer(int n, const std::string& rule) {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  DeviceTeam team(*kernels);
  SilentProgress silent;
  const MeanField field =
      test::local_crystal({.cell = test::with_mirrors(test::orthogonal_cell(6.0, 6.0, 12.0)),
                           .depth_ry = 3.0,
                           .width_bohr = 1.5,
                           .cutoff_ry = 4.0,
                           .bands = 14,
                           .k_grid = {n, n, 1}},
                          {0.001, 0.0, 0.0});
  const Deck deck = parse_deck(
      "self_test = false\n[meanfield]\nwfn = \"WFN\"\nrho = \"RHO\"\n[epsilon]\ncutoff_ry = 2.0\n"
      "[sigma]\nband_max = 3\nkpoints = [[0, 0, 0]]\n[coulomb]\nmax_charge_outside = 0.05\n"
      "truncation = \"slab\"\nzone_sum = \"" +
          rule + "\"\n",
      {}, "test", ".");
  return edges_of(solve_mean_field(
      deck, field, {.team = team, .memory_budget_bytes = std::int64_t{1} << 30}, silent));
}

// Found: 67 of 82, 52 of 63 and 96 of 103 meV. The estimate is static and leaves out elements off
// the diagonal of W.
TEST(ZoneSum, StatesTheChangeByTheOtherRule) {
  for (const char* name : {"silicon", "gaas", "zns"}) {
    const EdgesOfSigma points = edges_of_crystal(name, "points"),
                       cells = edges_of_crystal(name, "cells");
    const double change_ev = cells.top_ev - points.top_ev;
    EXPECT_NEAR(points.stated_change_ev, change_ev, 0.25 * std::abs(change_ev)) << name;
    EXPECT_NEAR(cells.stated_change_ev, -points.stated_change_ev, 1e-12) << name;
  }
}

// Only the head of W differs between the rules of a slab, so that the estimate is exact but for its
// frequency dependence. Gaps of 4×4, 6×6, 9×9 and 12×12 points: 11.719, 11.589, 11.556 and 11.551
// eV by points, 11.378, 11.338, 11.379 and 11.414 eV by mini-zones.
TEST(ZoneSum, AMonolayerConvergesWithTheGrid) {
  const EdgesOfSigma fine = edges_of_monolayer(9, "points"),
                     points = edges_of_monolayer(6, "points"),
                     cells = edges_of_monolayer(6, "cells");
  EXPECT_NEAR(points.gap_ev(), fine.gap_ev(), 0.05);
  EXPECT_GT(std::abs(cells.gap_ev() - fine.gap_ev()), 0.2);
  const double change_ev = cells.top_ev - points.top_ev;
  EXPECT_NEAR(points.stated_change_ev, change_ev, 0.02 * change_ev);
  EXPECT_LT(std::abs(points.gap_ev() - fine.gap_ev()), points.stated_change_ev);
}

}  // namespace
}  // namespace quasi::gw
