// Error bars from shared sums of χ and vectors, with exact sums Σ, against whole jobs repeated
// for each block (docs/theory/gw.md 9.3).

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/gw/support/bars_of_jobs.hpp"
#include "workers/gw/solver/pseudoband_errors/statistical_errors.hpp"
#include "workers/gw/solver/screening/grouped_screening.hpp"

namespace quasi::gw {
namespace {

using test::run_on_cpus;

constexpr const char* kEight =
    "[meanfield]\nsource = \"epm\"\ncell = \"cubic\"\ncutoff_ry = 5.0\nbands = 170\n"
    "[epsilon]\ncutoff_ry = 3.0\n[sigma]\nband_min = 14\nband_max = 18\n"
    "[pseudobands]\nvectors = 8\nblocks = 4\nprotected_ry = 0.3\n"
    "block_sums = \"exact\"\n";

Deck deck_of(const std::string& text, const std::vector<Setting>& settings = {}) {
  return parse_deck(text, settings, "test", ".");
}

/// Repeats the whole job for each block and for the window width.
PseudobandErrors repeated(const Deck& deck, Calculation run) {
  SilentProgress silent;
  DeviceTeam team({find_device("cpu")});
  const Workplace place{.team = team, .memory_budget_bytes = std::int64_t{1} << 30};
  const MeanField given = load_mean_field(deck.mean_field, demand_of(deck), team.first(), silent);
  run.pseudoband_errors = statistical_errors(deck, given, place, run, silent);
  add_window_width(deck, given, place, silent, run);
  return *run.pseudoband_errors;
}

// Both forms add the same terms in other orders. Energies are of the order of 10 eV, and their
// rounding is magnified by the inverse of ε: 1e-9 eV, against half-widths of more than 1e-3 eV.
void expect_equal(const Deck& deck) {
  constexpr double kRounding_ev = 1e-9;
  const Calculation shared = run_on_cpus(deck);
  ASSERT_TRUE(shared.pseudoband_errors);
  const PseudobandErrors &one = *shared.pseudoband_errors, whole = repeated(deck, shared);
  ASSERT_EQ(one.half_width_ev.size(), whole.half_width_ev.size());
  ASSERT_EQ(one.window_width_ev.size(), whole.window_width_ev.size());
  for (std::size_t i = 0; i < one.half_width_ev.size(); ++i) {
    EXPECT_GT(one.half_width_ev[i], 1e-3);
    EXPECT_NEAR(one.half_width_ev[i], whole.half_width_ev[i], kRounding_ev);
    EXPECT_NEAR(one.estimate_ev[i], whole.estimate_ev[i], kRounding_ev);
    EXPECT_NEAR(one.window_width_ev[i], whole.window_width_ev[i], kRounding_ev);
  }
  EXPECT_NEAR(one.gap_ev.value(), whole.gap_ev.value(), kRounding_ev);
  EXPECT_NEAR(one.gap_half_width_ev.value(), whole.gap_half_width_ev.value(), kRounding_ev);
}

TEST(SharedBlocks, RealStatesAtGamma) { expect_equal(deck_of(kEight)); }

TEST(SharedBlocks, ComplexStatesAndTwoFrequencies) {
  expect_equal(
      deck_of(kEight, {Setting{"meanfield.crystal", "gaas"}, Setting{"sigma.method", "gn-gpp"}}));
}

// The sum over q uses the symmetry of the crystal, which completes χ after the groups are added.
TEST(SharedBlocks, SeveralKPoints) {
  expect_equal(
      deck_of("[meanfield]\nsource = \"epm\"\nk_grid = [2, 2, 2]\ncutoff_ry = 8.0\n"
              "bands = 100\n[epsilon]\ncutoff_ry = 3.0\n[sigma]\nband_min = 4\n"
              "band_max = 5\nkpoints = [[0, 0, 0]]\n"
              "[pseudobands]\nvectors = 4\nblocks = 4\nprotected_ry = 0.6\n"
              "block_sums = \"exact\"\n"));
}

TEST(SharedBlocks, PolynomialsAndTheClosedSum) {
  expect_equal(deck_of(
      kEight,
      {Setting{"meanfield.solver", "operator"}, Setting{"meanfield.bands", "70"},
       Setting{"pseudobands.closure", "sigma"}, Setting{"pseudobands.max_identity_error", "0.02"},
       Setting{"pseudobands.ratio", "0.5"}, Setting{"pseudobands.vectors", "3"},
       Setting{"pseudobands.blocks", "3"}}));
}

// Without blocks χ is one sum. The energies of a job do not depend on the way of adding it.
TEST(SharedBlocks, EnergiesAreThoseOfAJobWithoutBlocks) {
  Deck deck = deck_of(kEight);
  const Calculation with = run_on_cpus(deck);
  deck.pseudobands.blocks = 0;
  const Calculation without = run_on_cpus(deck);
  ASSERT_EQ(with.quasiparticles.size(), without.quasiparticles.size());
  for (std::size_t i = 0; i < with.quasiparticles.size(); ++i)
    EXPECT_NEAR(with.quasiparticles[i].sigma_ev, without.quasiparticles[i].sigma_ev, 1e-9);
}

TEST(SharedBlocks, SameBitsOnThreeDevicesAndAfterInterruptions) {
  test::expect_same_bars_on_any_devices_and_after_interruptions(deck_of(kEight));
}

}  // namespace
}  // namespace quasi::gw
