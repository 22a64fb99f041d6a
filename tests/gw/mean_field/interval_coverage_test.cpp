// Coverage of the stated 95 % intervals of pseudobands by many seeds. Nightly.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <string>

#include "workers/gw/solver/calculation/gw_calculation.hpp"

namespace quasi::gw {
namespace {

constexpr int kSeeds = 200;

Calculation run(const std::string& crystal, const std::string& more) {
  SilentProgress silent;
  const auto kernels = make_gw_kernels(find_device("cpu"));
  return run_calculation(
      parse_deck("[meanfield]\nsource = \"epm\"\ncrystal = \"" + crystal +
                     "\"\ncell = \"cubic\"\ncutoff_ry = 5.0\nbands = 170\n[epsilon]\ncutoff_ry = "
                     "3.0\n[sigma]\nband_min = 14\nband_max = 17\n" +
                     more,
                 {}, "test", "."),
      *kernels, std::int64_t{1} << 30, silent);
}

/// Counts the intervals that contain a true value, and sums the errors of their centres.
struct Coverage {
  double truth = 0.0;
  int covered = 0;
  double error = 0.0, square = 0.0, width = 0.0;
  void add(double value, double half_width) {
    covered += std::abs(value - truth) <= half_width;
    error += value - truth;
    square += (value - truth) * (value - truth);
    width += half_width;
  }
  void expect_sound(const char* what) const {
    const double n = kSeeds, mean = error / n, spread = std::sqrt(square / n - mean * mean);
    std::printf("%s: covered %.1f %%, error %.4f +- %.4f, spread %.4f, half-width %.4f eV\n", what,
                100.0 * covered / n, mean, spread / std::sqrt(n), spread, width / n);
    EXPECT_GE(covered, 0.90 * n) << what;
    EXPECT_LE(covered, 0.99 * n) << what;
  }
};

// Valence top, conduction bottom and gap are compared with the job of all bands. The seeds are
// fixed, so that the counts are fixed too.
void expect_coverage(const std::string& crystal, int blocks, int sigma_factor = 1) {
  const Calculation all = run(crystal, "");
  const auto occupied = static_cast<std::size_t>(all.field.n_occupied - 14);
  Coverage top{.truth = all.quasiparticles.at(occupied).sigma_ev},
      bottom{.truth = all.quasiparticles.at(occupied + 1).sigma_ev},
      gap{.truth = bottom.truth - top.truth};
  for (int seed = 0; seed < kSeeds; ++seed) {
    const Calculation found =
        run(crystal, "[pseudobands]\nvectors = 8\nprotected_ry = 0.3\nblocks = " +
                         std::to_string(blocks) + "\nseed = " + std::to_string(seed) +
                         "\nsigma_factor = " + std::to_string(sigma_factor) + "\n");
    const PseudobandErrors& errors = found.pseudoband_errors.value();
    top.add(errors.estimate_ev[occupied], errors.half_width_ev[occupied]);
    bottom.add(errors.estimate_ev[occupied + 1], errors.half_width_ev[occupied + 1]);
    gap.add(errors.gap_ev.value(), errors.gap_half_width_ev.value());
  }
  top.expect_sound("valence top");
  bottom.expect_sound("conduction bottom");
  gap.expect_sound("gap");
}
TEST(IntervalCoverage, SiliconFourBlocks) { expect_coverage("silicon", 4); }
TEST(IntervalCoverage, GalliumArsenideFourBlocks) { expect_coverage("gaas", 4); }
// More blocks of the same vectors have a smaller Student's factor.
TEST(IntervalCoverage, SiliconEightBlocks) { expect_coverage("silicon", 8); }
TEST(IntervalCoverage, GalliumArsenideEightBlocks) { expect_coverage("gaas", 8); }
TEST(IntervalCoverage, SiliconMoreVectorsInSigma) { expect_coverage("silicon", 8, 4); }

}  // namespace
}  // namespace quasi::gw
