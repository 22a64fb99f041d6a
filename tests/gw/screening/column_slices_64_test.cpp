// Compares a job of 64 atoms whose matrices are cut into slices, on one and two devices, with the
// job that has whole matrices. The tests run nightly.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/gw/support/bars_of_jobs.hpp"

namespace quasi::gw {
namespace {

// ε has 1,500 plane waves, and Σ has pseudobands with the closed sum and error bars. Sums of 1e6
// terms in another order leave relative deviations of 1e-11 in Σ and ε⁻¹.
TEST(ColumnSlices64, EqualTheWholeFormAndHaveTheSameBitsOnTwoDevices) {
  Deck deck = parse_deck(
      "[meanfield]\nsource = \"epm\"\ncell = \"cubic\"\nsupercell = [2, 2, 2]\n"
      "cutoff_ry = 6.0\nbands = 150\nsolver = \"operator\"\n"
      "[epsilon]\nwrite = false\ncutoff_ry = 4.8\n[sigma]\nband_min = 126\nband_max = 131\n"
      "[pseudobands]\nvectors = 4\nblocks = 4\nprotected_ry = 0.1\nclosure = \"sigma\"\n"
      "max_identity_error = 0.02\nratio = 0.5\n",
      {}, "test", ".");
  const Calculation whole = test::run_on_cpus(deck);
  deck.epsilon.column_slices = 8;
  const Calculation one = test::run_on_cpus(deck), two = test::run_on_cpus(deck, 2);
  const auto &a = whole.epsilon[0].inverse[0], &b = one.epsilon[0].inverse[0];
  ASSERT_EQ(a.size(), b.size());
  double largest = 0.0, of_sigma = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  EXPECT_LE(largest, 1e-11);
  EXPECT_EQ(b, two.epsilon[0].inverse[0]);
  ASSERT_EQ(whole.quasiparticles.size(), one.quasiparticles.size());
  for (std::size_t i = 0; i < whole.quasiparticles.size(); ++i) {
    const Quasiparticle &x = whole.quasiparticles[i], &y = one.quasiparticles[i];
    of_sigma = std::max(of_sigma, std::abs(x.sigma_ev - y.sigma_ev) / std::abs(x.sigma_ev));
    EXPECT_EQ(y.sigma_ev, two.quasiparticles[i].sigma_ev);
    EXPECT_EQ(y.z, two.quasiparticles[i].z);
  }
  std::printf("ε⁻¹ departs by %.1e, Σ by %.1e of itself\n", largest, of_sigma);
  EXPECT_LE(of_sigma, 1e-11);
  EXPECT_EQ(one.pseudoband_errors->half_width_ev, two.pseudoband_errors->half_width_ev);
}

// The error bars come from a separate Σ for each block. Rounding of 1e-10 eV is magnified, because
// half-widths of 1 meV come from small differences between blocks.
TEST(ColumnSlices64, ErrorBarsByExactSums) {
  Deck deck = parse_deck(
      "[meanfield]\nsource = \"epm\"\ncell = \"cubic\"\ncutoff_ry = 5.0\nbands = 70\n"
      "solver = \"operator\"\n[epsilon]\nwrite = false\ncutoff_ry = 4.0\n"
      "[sigma]\nband_min = 14\nband_max = 18\n[pseudobands]\nvectors = 4\nblocks = 4\n"
      "protected_ry = 0.3\nclosure = \"sigma\"\nmax_identity_error = 0.02\nratio = 0.5\n"
      "block_sums = \"exact\"\n",
      {}, "test", ".");
  const Calculation whole = test::run_on_cpus(deck);
  deck.epsilon.column_slices = 5;
  const Calculation one = test::run_on_cpus(deck), two = test::run_on_cpus(deck, 2);
  const auto &a = whole.pseudoband_errors->half_width_ev, &b = one.pseudoband_errors->half_width_ev;
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(b, two.pseudoband_errors->half_width_ev);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_GT(a[i], 1e-3);
    EXPECT_NEAR(a[i], b[i], 1e-6 * a[i]) << i;
  }
}

}  // namespace
}  // namespace quasi::gw
