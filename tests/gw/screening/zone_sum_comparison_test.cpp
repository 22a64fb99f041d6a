// Rules for sums over the q-grid near q → 0, compared on k-grids from 3³ to 8³. Prints the table of
// docs/theory/gw.md 5.1.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <string>

#include "workers/backend/device/device.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"

namespace quasi::gw {
namespace {

enum class Rule { kPoints, kCells, kBerkeley };

/// Σ of the valence top at Γ, eV.
double top_ev(const std::string& crystal, int n, Rule rule) {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  const std::string grid = std::to_string(n);
  Deck deck = parse_deck("self_test = false\n[meanfield]\nsource = \"epm\"\ncrystal = \"" +
                             crystal + "\"\ncutoff_ry = 4.0\nbands = 18\nk_grid = [" + grid + "," +
                             grid + "," + grid +
                             "]\n[epsilon]\ncutoff_ry = 2.0\n[sigma]\nkpoints = [[0, 0, 0]]\n"
                             "band_min = 2\nband_max = 7\n",
                         {}, "test", ".");
  deck.coulomb.zone_sum = rule == Rule::kPoints ? ZoneSum::kPoints : ZoneSum::kCells;
  if (rule == Rule::kBerkeley) deck.coulomb.wing_rule = WingRule::kListedPoint;
  const Calculation run = run_calculation(deck, *kernels, std::int64_t{1} << 30, silent);
  for (const Quasiparticle& qp : run.quasiparticles)
    if (qp.band == run.field.n_occupied) return qp.sigma_ev;
  return 0.0;
}

// Rules that tend to one limit differ ever less. Found: 82 → 16, 63 → 13 and 103 → 25 meV.
TEST(ZoneSumComparison, RulesTendToOneLimit) {
  for (const char* crystal : {"silicon", "gaas", "zns"}) {
    double coarse_ev = 0.0, fine_ev = 0.0;
    for (const int n : {3, 4, 6, 8}) {
      const double points = top_ev(crystal, n, Rule::kPoints),
                   cells = top_ev(crystal, n, Rule::kCells);
      std::printf("%-8s %d  points %9.4f  cells %9.4f  compat %9.4f eV\n", crystal, n, points,
                  cells, n < 8 ? top_ev(crystal, n, Rule::kBerkeley) : 0.0);
      (n == 3 ? coarse_ev : fine_ev) = std::abs(points - cells);
    }
    EXPECT_LT(fine_ev, 0.3 * coarse_ev) << crystal;
  }
}

}  // namespace
}  // namespace quasi::gw
