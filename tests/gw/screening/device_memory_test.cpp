// Tests the planned memory of a GPU against what jobs took (docs/performance/methods.md), and that
// the plan of a job counts the arrays of its device.

#include <gtest/gtest.h>

#include <cmath>

#include "workers/gw/model/memory_limits.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/calculation/memory/band_memory.hpp"
#include "workers/gw/solver/calculation/memory/error_bar_memory.hpp"
#include "workers/gw/solver/calculation/pseudoband_step.hpp"
#include "workers/gw/solver/mean_field/load_mean_field.hpp"

namespace quasi::gw {
namespace {

constexpr double kGib = 1073741824.0;

/// A job of silicon with error bars whose peak on each device was sampled by nvidia-smi. All its
/// matrices are real, and 21 outer states are wanted.
struct MeasuredJob {
  double n_g, edge;  ///< plane waves of ε, and edge of the box of transforms
  double bands;      ///< inner bands that a device has at a time
  double n_changes, kept, kept_of_q, ranges;
  double used_gib;
};

// 216 atoms on an H100 sum their bands in eight parts and keep all changes. 1,000 atoms on four and
// on two H200s have a share of the changes and one of eight ranges of the others. A quarter of
// their budget holds 411 bands. Tolerance: the samples are 0.2 s apart, and a device takes the
// shares of nine changes in any order.
TEST(DeviceMemory, ErrorBarsTakeWhatWasMeasured) {
  for (const MeasuredJob& job : {MeasuredJob{11075, 48, 146, 9, 9, 9, 1, 7.05},
                                 {11075, 48, 221, 9, 9, 9, 1, 7.70},
                                 {11075, 48, 296, 9, 9, 9, 1, 8.39},
                                 {11075, 48, 371, 9, 9, 9, 1, 8.97},
                                 {11075, 48, 371, 13, 13, 13, 1, 10.81},
                                 {51627, 90, 411, 9, 3, 2, 8, 74.90},
                                 {51627, 90, 411, 9, 5, 4, 8, 92.26}}) {
    const double planned =
        kLibraries_bytes +
        bytes_of_response({.n_g = job.n_g,
                           .n_changes = job.n_changes,
                           .kept = job.kept,
                           .kept_of_q = job.kept_of_q,
                           .ranges = job.ranges,
                           .real = true}) +
        bytes_of_products({.points = std::pow(job.edge, 3)},
                          {.left = 21.0, .right = job.bands, .n_g = job.n_g}, 1.5);
    EXPECT_NEAR(planned / kGib, job.used_gib, 0.06 * job.used_gib) << job.n_g << " " << job.bands;
  }
}

// By hand: bands of both sides on a box of 10³ points, a batch of transforms, and blocks of
// products with 200 plane waves. Real products take half of a complex number, and two share a
// transform.
TEST(DeviceMemory, PairsOfChiTakeTwoBlocks) {
  const BandArrays arrays{.points = 1000.0};
  PairShape shape{.left = 5.0, .right = 40.0, .n_g = 200.0, .real = true};
  EXPECT_DOUBLE_EQ(bytes_of_chi_pairs(arrays, shape),
                   16.0 * 1000.0 * (45.0 + 20.0) + 2.0 * 8.0 * 200.0 * 200.0);
  shape.real = false;
  EXPECT_DOUBLE_EQ(bytes_of_chi_pairs(arrays, shape),
                   16.0 * 1000.0 * (45.0 + 40.0) + 2.0 * 16.0 * 200.0 * 200.0);
  // Ten million pairs come in blocks of kChiBlock_bytes, and a batch has 1,024 transforms.
  shape = {.left = 1e3, .right = 1e4, .n_g = 200.0};
  EXPECT_DOUBLE_EQ(bytes_of_chi_pairs(arrays, shape),
                   16.0 * 1000.0 * (11000.0 + 1024.0) + 2.0 * static_cast<double>(kChiBlock_bytes));
  const BandArrays spinors{.points = 1000.0, .n_spinor = 2.0};
  EXPECT_DOUBLE_EQ(bytes_of_bands(spinors, {.left = 5.0, .right = 40.0, .n_g = 200.0}),
                   16.0 * 1000.0 * (2.0 * 45.0 + 40.0));
}

/// Eight atoms whose random vectors have error bars.
Deck deck_with_bars(int sigma_factor) {
  return parse_deck(
      "[meanfield]\nsource = \"epm\"\ncell = \"cubic\"\ncutoff_ry = 5.0\nbands = 60\n"
      "solver = \"operator\"\n[epsilon]\ncutoff_ry = 3.0\n[sigma]\nband_min = 15\nband_max = 18\n"
      "[pseudobands]\nvectors = 8\nblocks = 4\nprotected_ry = 0.25\nmax_identity_error = 0.02\n"
      "ratio = 0.5\nsigma_factor = " +
          std::to_string(sigma_factor) + "\n",
      {}, "test", ".");
}

// A GPU that sums Σ and its bars once has, by hand: real poles of 8 bytes, five changes of 4, and
// the bands of one part with packed products. χ has four sums of the protected bands and of one
// block.
TEST(DeviceMemory, PlansCountTheArraysOfADevice) {
  SilentProgress silent;
  const auto kernels = make_gw_kernels(find_device("cpu"));
  for (const int sigma_factor : {1, 3}) {
    const Deck deck = deck_with_bars(sigma_factor);
    Calculation run{.field = load_mean_field(deck.mean_field, demand_of(deck), *kernels, silent),
                    .plan = {},
                    .seconds = {}};
    const Wavefunctions given = replace_by_pseudobands(deck, *kernels, run);
    run.plan = make_plan(deck, run.field, std::int64_t{4} << 30, nullptr, false);
    add_pseudobands_to_plan(deck, given, 1, run);
    const double n_g = std::sqrt(elements_of_w(run)), n = n_g * n_g;
    const GSphere sphere = make_g_sphere(run.field.crystal().bdot, {}, 3.0);
    const BandArrays arrays = band_arrays(run.field, sphere.g, false);
    const double n_l = run.plan.sigma.band_max - run.plan.sigma.band_min + 1,
                 parts = std::floor(run.plan.sigma.bands / 64.0),
                 in_part = std::ceil(run.plan.sigma.bands / std::max(1.0, parts)),
                 products =
                     16.0 * arrays.points * (n_l + 2.0 * in_part) + 24.0 * n_l * in_part * n_g;
    ASSERT_LE(parts, 8.0);
    EXPECT_DOUBLE_EQ(run.plan.device.error_bars, std::max(28.0 * n + products, 36.0 * n));
    EXPECT_GT(run.plan.device.sums, 4.0 * 8.0 * 0.8 * n);
    EXPECT_EQ(run.plan.device.libraries, kLibraries_bytes);
    EXPECT_EQ(run.plan.memory_bytes, run.plan.device.peak());
    EXPECT_GE(static_cast<double>(run.plan.memory_bytes),
              kLibraries_bytes + run.plan.device.error_bars);
  }
}

}  // namespace
}  // namespace quasi::gw
