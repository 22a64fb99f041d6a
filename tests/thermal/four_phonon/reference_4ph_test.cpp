#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/every_device.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/thermal/support/reference_run.hpp"
#include "workers/thermal/input/deck/crystal_input.hpp"
#include "workers/thermal/input/force_constants/force_constants.hpp"
#include "workers/thermal/solver/four_phonon/scattering_4ph.hpp"

namespace quasi::thermal {
namespace {

struct Solved {
  Control control;
  Modes modes;
  Symmetry symmetry;
  Rates4ph rates;
};

Solved solve(const test::ReferenceRun& run, const Device& device) {
  Solved s;
  s.control = run.control();
  const Crystal crystal = make_crystal(s.control);
  s.symmetry = find_symmetry(crystal, s.control.symmetry_options());
  SilentProgress silent;
  const SecondOrder second = read_second_order(run.deck(), s.control, crystal);
  s.modes = solve_harmonic(crystal, second, s.symmetry, s.control.harmonic_options(), silent);
  run.inject(crystal, s.symmetry, s.control, s.modes);
  const SparseForceConstants fourth =
      read_sparse_force_constants(run.deck() / "FORCE_CONSTANTS_4TH", 4, crystal);
  const Problem4ph problem =
      make_problem_4ph(crystal, s.modes, s.symmetry, s.control.four_phonon_options(), fourth,
                       s.symmetry.irreducible);
  const auto kernels = make_scattering_kernels_4ph(device, 0);
  s.rates = scattering_rates_4ph(problem, s.control.constants(), {kernels.get()}, silent);
  return s;
}

constexpr const char* kChannelFile[3] = {"plusplus", "plusminus", "minusminus"};

/// Runs with the reference's eigenvectors and velocities injected.
class Reference4ph : public quasi::test::OnEveryDevice {
 protected:
  void check(const char* name, double count_tolerance) {
    const test::ReferenceRun run(name);
    const Solved s = solve(run, GetParam());
    const int nb = s.modes.n_branches;
    const auto n_points = static_cast<std::int64_t>(s.symmetry.irreducible.size());

    const auto counts = run.table("BTE.Numprocess_4ph");
    double expected[3] = {};
    for (const auto& row : counts)
      for (int c = 0; c < 3; ++c) expected[c] += row[c];
    for (int c = 0; c < 3; ++c)
      EXPECT_NEAR(s.rates.total_processes(static_cast<Channel4ph>(c)), expected[c],
                  c == 1 ? count_tolerance * expected[c] : 2.0)
          << kChannelFile[c];

    for (int c = 0; c < 3; ++c) {
      const auto channel = static_cast<Channel4ph>(c);
      const auto reference = run.mode_column(std::string("T300K/BTE.w_4ph_") + kChannelFile[c], nb);
      double worst = 0.0, sum = 0.0, sum_reference = 0.0;
      for (std::int64_t i = 0; i < n_points; ++i)
        for (int b = 0; b < nb; ++b) {
          const double ours = s.rates.rate_per_ps(channel, 0, i * nb + b);
          const double theirs = reference[static_cast<std::size_t>(i * nb + b)];
          sum += ours;
          sum_reference += theirs;
          if (theirs != 0.0) {
            worst = std::max(worst, std::fabs(ours - theirs) / theirs);
          } else {
            EXPECT_EQ(ours, 0.0);
          }
        }
      // Files hold ten digits. Single +- rates hang on ties between rounding errors
      // (docs/theory/thermal.md 7.5).
      if (c != 1) {
        EXPECT_LT(worst, 1e-6) << kChannelFile[c];
      }
      EXPECT_NEAR(sum, sum_reference, (c == 1 ? 1e-2 : 1e-6) * sum_reference) << kChannelFile[c];

      // Phase spaces: printed with six (weighted) and ten digits.
      const auto weighted = run.mode_column(std::string("T300K/BTE.WP4_") + kChannelFile[c], nb);
      const auto bare = run.table(std::string("BTE.P4_") + (c == 1 ? "plusmius" : kChannelFile[c]));
      double sums[4] = {};
      for (std::int64_t row = 0; row < n_points * nb; ++row) {
        sums[0] +=
            s.rates.weighted_phase_space[static_cast<std::size_t>(s.rates.at(channel, 0, row))];
        sums[1] += weighted[static_cast<std::size_t>(row)];
        sums[2] += s.rates.phase_space[static_cast<std::size_t>(s.rates.at(channel, row))];
        sums[3] += bare[static_cast<std::size_t>(row / nb)][static_cast<std::size_t>(row % nb)];
      }
      EXPECT_NEAR(sums[0], sums[1], (c == 1 ? 1e-2 : 1e-5) * sums[1]) << kChannelFile[c];
      EXPECT_NEAR(sums[2], sums[3], (c == 1 ? 1e-3 : 1e-8) * sums[3]) << kChannelFile[c];
    }
  }
};

TEST_P(Reference4ph, Mesh4Narrow) {
  QUASI_NEED_REFERENCE("thermal/si/runs");
  check("34ph_m04_sb0.1", 1e-3);
}
TEST_P(Reference4ph, Mesh4Wide) {
  QUASI_NEED_REFERENCE("thermal/si/runs");
  check("34ph_m04_sb1.0", 1e-3);
}
TEST_P(Reference4ph, Mesh6Narrow) {
  QUASI_NEED_REFERENCE("thermal/si/runs");
  check("34ph_m06_sb0.1", 1e-3);
}

QUASI_ON_EVERY_DEVICE(Reference4ph);

}  // namespace
}  // namespace quasi::thermal
