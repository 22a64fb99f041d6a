#include <gtest/gtest.h>

#include "tests/support/every_device.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/thermal/support/reference_run.hpp"
#include "workers/thermal/input/deck/crystal_input.hpp"
#include "workers/thermal/input/force_constants/force_constants.hpp"
#include "workers/thermal/solver/four_phonon/scattering_4ph.hpp"

namespace quasi::thermal {
namespace {

// The enumeration at production size: processes of the published 16³ example, sb = 1, 7.6e10 of
// them, from its own position; every point on CUDA (some ten seconds), Γ alone on the CPU (two
// minutes of one core). No matrix elements, which hang on a file that was not published.
class Published4ph : public quasi::test::OnEveryDevice {};

TEST_P(Published4ph, ProcessesOfTheExample) {
  QUASI_NEED_REFERENCE("thermal/si/published_m16_sb1.0");
  const test::ReferenceRun run(test::kPublished);
  const Control control = run.control();
  const Crystal crystal = make_crystal(control);
  const Symmetry symmetry = find_symmetry(crystal, control.symmetry_options());
  SilentProgress silent;
  const Modes modes = solve_harmonic(crystal, read_second_order(run.deck(), control, crystal),
                                     symmetry, control.harmonic_options(), silent);
  const auto expected = run.table("BTE.Numprocess_4ph");
  const auto nb = static_cast<std::size_t>(modes.n_branches);
  ASSERT_EQ(expected.size(), symmetry.irreducible.size() * nb);
  std::vector<std::int32_t> points = symmetry.irreducible;
  if (GetParam().backend == Backend::kCpu) points.resize(1);
  const Problem4ph problem = make_problem_4ph(
      crystal, modes, symmetry, control.four_phonon_options(),
      read_sparse_force_constants(run.deck() / "FORCE_CONSTANTS_4TH", 4, crystal), points);
  const auto kernels = make_scattering_kernels_4ph(GetParam(), 0);
  kernels->load(problem);
  const ThinnedLayout4ph layout{1};
  std::vector<double> count(points.size() * nb * kChannels4ph, 0.0);
  const auto n_q = static_cast<std::int32_t>(problem.mesh.size());
  for (std::int32_t first = 0; first < n_q; first += 16) {
    const auto sums = kernels->thinned_sums({.seed = 1}, first, std::min(n_q, first + 16));
    for (std::size_t i = 0; i < count.size(); ++i)
      count[i] += sums[i * static_cast<std::size_t>(layout.size()) +
                       static_cast<std::size_t>(layout.six_count())] /
                  6.0;
  }
  double found[3] = {}, wanted[3] = {};
  for (std::size_t row = 0; row < points.size() * nb; ++row)
    for (std::size_t c = 0; c < 3; ++c) {
      // A window's edge can compare two rounding errors (docs/theory/thermal.md 7.5).
      EXPECT_NEAR(count[row * 3 + c], expected[row][c], 4.0) << "row " << row << ", channel " << c;
      found[c] += count[row * 3 + c];
      wanted[c] += expected[row][c];
    }
  for (int c = 0; c < 3; ++c) EXPECT_NEAR(found[c], wanted[c], 20.0) << "channel " << c;
  if (points.size() == symmetry.irreducible.size()) {
    EXPECT_EQ(wanted[0], 6151125331.0);
    EXPECT_EQ(wanted[1], 67441450671.0);
    EXPECT_EQ(wanted[2], 2492014586.0);
  }
  std::printf("    processes: %.0f / %.0f / %.0f, published %.0f / %.0f / %.0f\n", found[0],
              found[1], found[2], wanted[0], wanted[1], wanted[2]);
}

QUASI_ON_EVERY_DEVICE(Published4ph);

}  // namespace
}  // namespace quasi::thermal
