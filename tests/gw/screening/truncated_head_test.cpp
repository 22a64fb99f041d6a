// W at q → 0 with a truncated interaction: independent of the rule for wings, of the k-grid within
// the error of a sum over few points, and of the vacuum.

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/gw/support/local_crystal.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"

namespace quasi::gw {
namespace {

struct SigmaAtGamma {
  double occupied_ev = 0.0, empty_ev = 0.0;
  double gap_ev() const { return empty_ev - occupied_ev; }
};

/// Σ of the lowest two of three bands at Γ by a whole job.
SigmaAtGamma sigma_of(const MeanField& field, const std::string& truncation, bool compatible) {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  DeviceTeam team(*kernels);
  SilentProgress silent;
  const Deck deck = parse_deck(
      std::string("compat = \"") + (compatible ? "bgw" : "none") +
          "\"\n[meanfield]\nwfn = \"WFN\"\nrho = \"RHO\"\n[epsilon]\ncutoff_ry = 2.0\n"
          "[sigma]\nband_max = 3\nkpoints = [[0, 0, 0]]\n[coulomb]\nmax_charge_outside = 0.05\n"
          "truncation = \"" +
          truncation + "\"\n",
      {}, "test", ".");
  const Calculation run = solve_mean_field(
      deck, field, {.team = team, .memory_budget_bytes = std::int64_t{1} << 30}, silent);
  return {run.quasiparticles.at(0).sigma_ev, run.quasiparticles.at(1).sigma_ev};
}

MeanField slab(int n, double vacuum) {
  return test::local_crystal({.cell = test::with_mirrors(test::orthogonal_cell(6, 6, vacuum)),
                              .depth_ry = 3.0,
                              .width_bohr = 1.5,
                              .cutoff_ry = 4.0,
                              .bands = 16,
                              .k_grid = {n, n, 1}},
                             {0.001, 0.0, 0.0});
}

/// A chain of wells `spacing` apart, of narrow gap if they are close.
struct Chain {
  double spacing = 4.0, width = 1.3;
  double vacuum = 10.0;
  int bands = 20;
};
MeanField chain(int n, const Chain& c = {}) {
  const Crystal cell =
      test::with_mirrors(test::orthogonal_cell(c.vacuum, 1.1 * c.vacuum, c.spacing));
  return test::local_crystal({.cell = cell,
                              .depth_ry = 3.0,
                              .width_bohr = c.width,
                              .cutoff_ry = 4.0,
                              .bands = c.bands,
                              .k_grid = {1, 1, n}});
}

// Both rules for wings average W at q → 0 as a whole, so a slab has one Σ. With ε⁻¹_00(q₀) v̄₀ in
// place of the average, occupied states of this slab sink and empty ones rise.
TEST(TruncatedHead, OfASlabDoesNotDependOnTheWingRule) {
  const MeanField field = slab(3, 12.0);
  const SigmaAtGamma own = sigma_of(field, "slab", false),
                     field_rule = sigma_of(field, "slab", true);
  EXPECT_NEAR(own.occupied_ev, field_rule.occupied_ev, 5e-3);
  EXPECT_NEAR(own.empty_ev, field_rule.empty_ev, 5e-3);
}

// Found for 3×3, 4×4 and 6×6 points: 11.348, 11.378 and 11.338 eV.
TEST(TruncatedHead, OfASlabLetsTheGapConvergeWithK) {
  const double fine_ev = sigma_of(slab(6, 12.0), "slab", true).gap_ev();
  for (const int n : {3, 4})
    EXPECT_NEAR(sigma_of(slab(n, 12.0), "slab", true).gap_ev(), fine_ev, 0.06) << n;
}

// Found for 4, 8 and 16 points: 10.837, 10.765 and 10.712 eV, with either rule for wings. With
// ε⁻¹_00(q₀) v̄₀ as the head they are 12.008, 11.045 and 10.770 eV.
TEST(TruncatedHead, OfAWireLetsTheGapConvergeWithK) {
  for (const bool compatible : {false, true}) {
    const auto gap_ev = [&](int n) { return sigma_of(chain(n), "wire", compatible).gap_ev(); };
    const double second_ev = gap_ev(8);
    EXPECT_NEAR(gap_ev(4), second_ev, 0.1);
    EXPECT_NEAR(gap_ev(16), second_ev, 0.1);
  }
}

// States that end within half of either cell. Bands follow the area, so that they end at one
// energy. Found: 12.175 and 12.225 eV.
TEST(TruncatedHead, OfAWireDoesNotDependOnTheVacuum) {
  const auto gap_ev = [](double vacuum, int bands) {
    const MeanField field =
        chain(8, {.spacing = 6.0, .width = 1.5, .vacuum = vacuum, .bands = bands});
    return sigma_of(field, "wire", false).gap_ev();
  };
  EXPECT_NEAR(gap_ev(10.0, 20), gap_ev(12.0, 29), 0.1);
}

// The limit is known in the plane of a slab and along the axis of a wire alone.
TEST(TruncatedHead, OtherDirectionsOfQ0AreRefused) {
  MeanField along = chain(2), across = slab(2, 12.0);
  along.q0 = {0.001, 0.0, 0.0};
  across.q0 = {0.0, 0.0, 0.001};
  EXPECT_THROW(sigma_of(along, "wire", false), InvalidInput);
  EXPECT_THROW(sigma_of(across, "slab", false), InvalidInput);
}

}  // namespace
}  // namespace quasi::gw
