// Changes of the poles that a device makes from ε̃⁻¹ against those from whole matrices in host
// memory (docs/theory/gw.md 9.3).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>

#include "tests/gw/support/weighted_blocks.hpp"
#include "workers/gw/solver/pseudoband_errors/screened_elements_at_q.hpp"

namespace quasi::gw {
namespace {

/// Numbers of q whose changes a device makes, and of those that it leaves to the host.
struct Counts {
  int made = 0, left = 0;
};

// Both round changes to single precision, 6e-8 of elements that are at most the largest. Elements
// next to a threshold may fall to different sides: one in a thousand is allowed.
Counts compare(test::WeightedBlocks& blocks, const SigmaOptions& options) {
  std::vector<double> all(static_cast<std::size_t>(blocks.plan.blocks) + 1, 1.0), without = all;
  without[1] = 0.0;
  const auto own = blocks.screening.dielectric_matrices(all),
             changed = blocks.screening.dielectric_matrices(without);
  GwKernels& kernels = *blocks.silicon.kernels;
  Counts counts;
  for (std::size_t iq = 0; iq < own.size(); ++iq) {
    ChangingPoles at;
    at.model = blocks.poles(own[iq], &at.at);
    auto elements = screened_elements_at(blocks.of_sigma, at.at, options, blocks.silicon.coulomb);
    ++(elements ? counts.made : counts.left);
    if (!elements) continue;
    const auto inverse = blocks.screening.inverse(without, iq, kernels);
    if (elements->at_zero)
      set_limit_of_small_q(blocks.of_sigma, blocks.silicon.coulomb,
                           inverse->rows(elements->n_heads), *elements);
    const auto model = kernels.pole_sums().load(at.model.view(), {});
    const PoleChange found = kernels.pole_sums().change_of_poles(*model, *inverse, *elements);
    ScreeningAtQ there;
    const PoleChange expected = change_of(at.model, blocks.poles(changed[iq], &there));
    EXPECT_EQ(found.strength.size(), expected.strength.size());
    double largest = 0.0, largest_tau = 0.0;
    for (std::size_t i = 0; i < expected.strength.size(); ++i) {
      largest = std::max<double>(largest, std::abs(expected.strength[i]));
      largest_tau = std::max<double>(largest_tau, std::abs(expected.tau_per_ry[i]));
    }
    EXPECT_GT(largest, 0.0);
    std::size_t different = 0;
    for (std::size_t i = 0; i < expected.strength.size(); ++i)
      different += std::abs(found.strength[i] - expected.strength[i]) > 1e-6 * largest ||
                   std::abs(found.tau_per_ry[i] - expected.tau_per_ry[i]) > 1e-6 * largest_tau;
    EXPECT_LE(different, expected.strength.size() / 1000);
  }
  return counts;
}

TEST(ChangeOnDevice, RealStatesAtGamma) {
  test::WeightedBlocks blocks;
  EXPECT_EQ(compare(blocks, blocks.options).made, 1);
}

// By k·p three plane waves stand for G = 0, and the body is averaged over the directions of q →
// 0.
TEST(ChangeOnDevice, AveragesTheDirectionsOfSmallQ) {
  for (const char* name : {"silicon", "gaas"}) {
    EmpiricalCrystal crystal = test::eight_atoms(name);
    crystal.by_velocity = true;
    test::WeightedBlocks blocks(crystal);
    EXPECT_EQ(compare(blocks, blocks.options).made, 1);
  }
}

TEST(ChangeOnDevice, ComplexStates) {
  test::WeightedBlocks blocks(test::eight_atoms("gaas"));
  SigmaOptions options = blocks.options;
  EXPECT_EQ(compare(blocks, options).made, 1);
  // Other poles and policies are left to the host.
  options.invalid = InvalidMode::kImaginary;
  EXPECT_EQ(compare(blocks, options).left, 1);
  options = blocks.options;
  options.method = SigmaMethod::kGodbyNeeds;
  EXPECT_EQ(compare(blocks, options).left, 1);
}

// A crystal with symmetries averages ε̃⁻¹ at q → 0 over their group, which the host does.
TEST(ChangeOnDevice, SeveralKPoints) {
  EmpiricalCrystal crystal;
  crystal.k_grid = {2, 2, 2};
  crystal.wavefunction_cutoff_ry = 8.0;
  crystal.bands = 100;
  test::WeightedBlocks blocks(crystal, {.vectors = 4, .protected_ry = 0.6, .blocks = 4});
  const Counts counts = compare(blocks, blocks.options);
  EXPECT_EQ(counts.left, 1);
  EXPECT_EQ(counts.made, 2);
}

}  // namespace
}  // namespace quasi::gw
