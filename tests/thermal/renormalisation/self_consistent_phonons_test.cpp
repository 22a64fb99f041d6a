// Tests self-consistent phonons of a simple cubic crystal with one atom and quartic bonds,
//   V = Σ_bonds Σ_α (k d_α²/2 + g d_α⁴/24),
// whose effective constants are bonds k_eff = k + g⟨d_α²⟩/2 (docs/theory/thermal.md 14).

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/every_device.hpp"
#include "workers/backend/error.hpp"
#include "workers/thermal/solver/renormalisation/half_mesh.hpp"
#include "workers/thermal/solver/renormalisation/self_consistent_phonons.hpp"
#include "workers/units/constants.hpp"

namespace quasi::thermal {
namespace {

constexpr double kQuartic_ev_a4 = 60.0;
constexpr std::array<Index3, 6> kNeighbours{Index3{1, 0, 0},  Index3{-1, 0, 0}, Index3{0, 1, 0},
                                            Index3{0, -1, 0}, Index3{0, 0, 1},  Index3{0, 0, -1}};

struct CubicCrystal {
  Crystal crystal;
  SecondOrder second;
  SparseForceConstants fourth;
};

CubicCrystal cubic_crystal(double k_ev_a2, double g_ev_a4) {
  CubicCrystal c;
  c.crystal.lattice_nm = {Vec3{0.3, 0, 0}, Vec3{0, 0.3, 0}, Vec3{0, 0, 0.3}};
  c.crystal.position = {Vec3{0, 0, 0}};
  c.crystal.type = {0};
  c.crystal.element = {"Si"};
  c.crystal.mass_amu = {28.0855};
  c.crystal.g_factor = {0.0};
  const double unit = kCodata2018.ev_per_a2_amu_to_omega2;
  c.second.supercell = {4, 4, 4};
  c.second.n_atoms = 1;
  c.second.value.assign(64 * 9, 0.0);
  const auto add_second = [&](const Index3& cell, double value) {
    const QMesh mesh{{4, 4, 4}};
    for (int a = 0; a < 3; ++a)
      c.second.value[9 * mesh.index(cell[0], cell[1], cell[2]) + 4 * a] += value * unit;
  };
  c.fourth.order = 4;
  const std::array<Index3, 2> origin{Index3{0, 0, 0}, Index3{0, 0, 0}};
  for (const Index3& neighbour : kNeighbours) {
    add_second(origin[0], k_ev_a2);
    add_second(neighbour, -k_ev_a2);
    for (int ends = 0; ends < 8; ++ends) {
      double sign = 1.0;
      for (int slot = 0; slot < 3; ++slot) {
        const bool far = (ends >> slot & 1) != 0;
        if (far) sign = -sign;
        const Index3& cell = far ? neighbour : origin[0];
        c.fourth.cell.insert(c.fourth.cell.end(), cell.begin(), cell.end());
      }
      c.fourth.atom.insert(c.fourth.atom.end(), 4, 0);
      for (int e = 0; e < 81; ++e) c.fourth.tensor.push_back(e % 40 == 0 ? sign * g_ev_a4 : 0.0);
    }
  }
  return c;
}

SelfConsistentOptions options_of(int n) {
  SelfConsistentOptions options;
  options.mesh = QMesh{{n, n, n}};
  options.tolerance = 1e-13;
  return options;
}

SelfConsistentConstants solve_with(const CubicCrystal& c, double temperature_k,
                                   const SelfConsistentOptions& options,
                                   const Device& device = {}) {
  return SelfConsistentPhonons(c.crystal, c.second, c.fourth, HarmonicOptions{}, options, device)
      .solve(temperature_k);
}
SelfConsistentConstants solve(const CubicCrystal& c, double temperature_k, int n) {
  return solve_with(c, temperature_k, options_of(n));
}

const PairCorrection& pair_at(const SelfConsistentConstants& result, const Index3& cell) {
  for (const PairCorrection& pair : result.correction)
    if (pair.cell == cell) return pair;
  throw std::runtime_error("no such pair");
}

double effective_bond_ev_a2(double k_ev_a2, double temperature_k, int n) {
  const auto result = solve(cubic_crystal(k_ev_a2, kQuartic_ev_a4), temperature_k, n);
  return k_ev_a2 - pair_at(result, {1, 0, 0}).value_ev_a2[0];
}

// The values come from an independent program in another language and are printed to nine
// decimals. The limit 1e-8 leaves room for the rounding of the constants of CODATA 2018.
TEST(SelfConsistentPhonons, QuarticBondsHaveTheIndependentlyComputedConstants) {
  EXPECT_NEAR(effective_bond_ev_a2(5.0, 0.0, 4), 5.064519067, 1e-8);
  EXPECT_NEAR(effective_bond_ev_a2(5.0, 300.0, 4), 5.075766607, 1e-8);
  EXPECT_NEAR(effective_bond_ev_a2(5.0, 3000.0, 4), 5.468252856, 1e-8);
  EXPECT_NEAR(effective_bond_ev_a2(5.0, 3e4, 4), 8.130311062, 1e-8);
  EXPECT_NEAR(effective_bond_ev_a2(5.0, 300.0, 8), 5.076455881, 1e-8);
}

// All bare modes of this crystal are imaginary.
TEST(SelfConsistentPhonons, ACrystalWithoutAStableBareModeIsStabilised) {
  EXPECT_NEAR(effective_bond_ev_a2(-1.0, 0.0, 4), 0.020253414, 1e-8);
  EXPECT_NEAR(effective_bond_ev_a2(-1.0, 300.0, 4), 0.214579202, 1e-8);
}

// The classical closed form of N_s cells is k_eff = (k + √(k² + 2/3 g k_BT (1 − 1/N_s)))/2. The
// first quantum correction is (ħω/k_BT)²/12 = 3e-5 at 3e4 K.
TEST(SelfConsistentPhonons, HotCrystalsReachTheClassicalLimit) {
  const double kt_ev = 8.617333262e-5 * 3e4;
  const double classical =
      0.5 * (5.0 + std::sqrt(25.0 + 2.0 / 3.0 * kQuartic_ev_a4 * kt_ev * (1.0 - 1.0 / 64.0)));
  EXPECT_NEAR(effective_bond_ev_a2(5.0, 3e4, 4) / classical, 1.0, 1e-4);
}

// The bonds of this crystal are equal and its components are independent, so that one equation
// remains: ω² = (2k/m) Σ_α (1 − cos q_α) and k = k_0 + g⟨d²⟩/2 with
//   ⟨d²⟩ = ħ/(2mN_s) Σ_q coth(ħω/2k_BT)/ω · (2/3) Σ_α (1 − cos q_α).
// It is solved by bisection here. The limit 1e-10 is that of the iteration's tolerance, 1e-13,
// with room for rounding.
TEST(SelfConsistentPhonons, TheScalarEquationOfEqualBondsHasTheSameSolution) {
  const double mass = 28.0855;
  const double hbar_a2_amu_per_ps = kCodata2018.hbar_1e34_j_s / (units::kAtomicMass_kg * 1e27) * 10;
  const auto new_bond = [&](double k0, double k, double temperature_k) {
    double sum = 0.0;
    for (int point = 1; point < 64; ++point) {
      double shape = 0.0;
      for (const int i : {point % 4, point / 4 % 4, point / 16})
        shape += 1.0 - std::cos(0.5 * units::kPi * i);
      const double omega = std::sqrt(2.0 * k * kCodata2018.ev_per_a2_amu_to_omega2 / mass * shape);
      const double x = 0.5 * kCodata2018.hbar_over_kb_k_ps() * omega / temperature_k;
      sum += 2.0 / 3.0 * shape / (omega * std::tanh(x));
    }
    return k0 + 0.5 * kQuartic_ev_a4 * hbar_a2_amu_per_ps / (2.0 * mass * 64.0) * sum;
  };
  for (const double k0 : {5.0, -1.0})
    for (const double temperature_k : {50.0, 300.0, 3000.0}) {
      double low = 1e-6;
      double high = 100.0;
      for (int i = 0; i < 100; ++i) {
        const double middle = 0.5 * (low + high);
        (new_bond(k0, middle, temperature_k) > middle ? low : high) = middle;
      }
      EXPECT_NEAR(effective_bond_ev_a2(k0, temperature_k, 4), low, 1e-10)
          << "k = " << k0 << " at " << temperature_k << " K";
    }
}

// The laws hold to rounding, 1e-12 of the largest element.
TEST(SelfConsistentPhonons, TheCorrectionObeysSumRuleExchangeAndPointGroup) {
  const auto result = solve(cubic_crystal(5.0, kQuartic_ev_a4), 300.0, 4);
  const double largest = std::fabs(pair_at(result, {0, 0, 0}).value_ev_a2[0]);
  ASSERT_GT(largest, 0.1);
  std::array<double, 9> sum{};
  for (const PairCorrection& pair : result.correction)
    for (int e = 0; e < 9; ++e) sum[e] += pair.value_ev_a2[e];
  const PairCorrection& first = pair_at(result, kNeighbours[0]);
  for (int e = 0; e < 9; ++e) EXPECT_NEAR(sum[e], 0.0, 1e-12 * largest);
  for (const Index3& cell : kNeighbours) {
    const PairCorrection& pair = pair_at(result, cell);
    const PairCorrection& reverse = pair_at(result, {-cell[0], -cell[1], -cell[2]});
    for (int a = 0; a < 3; ++a)
      for (int b = 0; b < 3; ++b) {
        EXPECT_NEAR(pair.value_ev_a2[3 * a + b], reverse.value_ev_a2[3 * b + a], 1e-12 * largest);
        EXPECT_NEAR(pair.value_ev_a2[3 * a + b], a == b ? first.value_ev_a2[0] : 0.0,
                    1e-12 * largest);
      }
  }
}

// Simple mixing needs more than 140 steps for the coldest of these crystals.
TEST(SelfConsistentPhonons, TheIterationEndsWithinThirtySteps) {
  const auto c = cubic_crystal(-1.0, kQuartic_ev_a4);
  for (const double temperature_k : {20.0, 100.0, 300.0, 1000.0})
    EXPECT_LE(solve(c, temperature_k, 4).iterations, 30) << temperature_k << " K";
}

TEST(HalfMesh, ItsPointsStandForAllPointsOfTheMesh) {
  const QMesh mesh{{3, 4, 5}};
  const HalfMesh half(mesh);
  std::vector<double> seen(60, 0.0);
  for (std::int64_t point = 0; point < half.size(); ++point) {
    const int* c = &half.points()[static_cast<std::size_t>(3 * point)];
    const Vec3 q = half.q(point);
    for (int d = 0; d < 3; ++d) EXPECT_EQ(q[d] * mesh.n[d], c[d]);
    const auto number = static_cast<std::size_t>(mesh.index(c[0], c[1], c[2]));
    const auto opposite = static_cast<std::size_t>(mesh.index(-c[0], -c[1], -c[2]));
    const double weight = half.weights()[static_cast<std::size_t>(point)];
    EXPECT_EQ(weight, number == opposite ? 1.0 : 2.0);
    seen[number] += weight / 2.0;
    seen[opposite] += weight / 2.0;
  }
  EXPECT_EQ(seen, std::vector<double>(60, 1.0));
  EXPECT_EQ(half.size(), 31);  // Γ, (0, 1/2, 0) and 29 of 58 others
}

TEST(SelfConsistentPhonons, WithoutFourthOrderNothingChanges) {
  const auto result = solve(cubic_crystal(5.0, 0.0), 300.0, 4);
  EXPECT_EQ(result.iterations, 1);
  for (const PairCorrection& pair : result.correction)
    for (const double value : pair.value_ev_a2) EXPECT_EQ(value, 0.0);
}

TEST(SelfConsistentPhonons, ACrystalThatStaysUnstableIsRefusedWithItsMode) {
  try {
    solve(cubic_crystal(-1.0, 0.0), 300.0, 4);
    FAIL() << "an unstable crystal was accepted";
  } catch (const InvalidInput& error) {
    EXPECT_NE(std::string(error.what()).find("stays unstable"), std::string::npos) << error.what();
  }
}

TEST(SelfConsistentPhonons, TooFewIterationsAreAnError) {
  SelfConsistentOptions options = options_of(4);
  options.max_iterations = 3;
  EXPECT_THROW(solve_with(cubic_crystal(5.0, kQuartic_ev_a4), 300.0, options), NotConverged);
}

TEST(SelfConsistentPhonons, OptionsOutOfRangeAreRefusedByName) {
  const auto c = cubic_crystal(5.0, kQuartic_ev_a4);
  const auto refusal = [&](const SelfConsistentOptions& options,
                           double temperature_k) -> std::string {
    try {
      solve_with(c, temperature_k, options);
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "accepted";
  };
  SelfConsistentOptions options = options_of(2);
  EXPECT_NE(refusal(options, -1.0).find("'temperature_k' is -1"), std::string::npos);
  options.mixing = 1.5;
  EXPECT_NE(refusal(options, 300.0).find("'mixing' is 1.5"), std::string::npos);
  options = options_of(2);
  options.tolerance = 0.0;
  EXPECT_NE(refusal(options, 300.0).find("'tolerance' is 0"), std::string::npos);
  options = options_of(2);
  options.max_iterations = 0;
  EXPECT_NE(refusal(options, 300.0).find("'max_iterations' is 0"), std::string::npos);
  EXPECT_NE(refusal(options_of(0), 300.0).find("'mesh' is 0"), std::string::npos);
}

class SelfConsistentPhononsOn : public quasi::test::OnEveryDevice {};

// Both devices stop when elements change by less than 1e-13 of the largest element of Φ₂. Modes
// that are almost soft amplify what is left, and 1e-10 leaves room for it.
TEST_P(SelfConsistentPhononsOn, EveryDeviceFindsTheConstantsOfTheCpu) {
  for (const double k_ev_a2 : {5.0, -1.0})
    for (const double temperature_k : {0.0, 300.0}) {
      const auto c = cubic_crystal(k_ev_a2, kQuartic_ev_a4);
      const auto host = solve(c, temperature_k, 4);
      const auto device = solve_with(c, temperature_k, options_of(4), GetParam());
      ASSERT_EQ(host.correction.size(), device.correction.size());
      for (std::size_t p = 0; p < host.correction.size(); ++p)
        for (std::size_t e = 0; e < 9; ++e)
          EXPECT_NEAR(device.correction[p].value_ev_a2[e], host.correction[p].value_ev_a2[e],
                      1e-10 * 6.0 * std::fabs(k_ev_a2))
              << "k = " << k_ev_a2 << " at " << temperature_k << " K";
    }
}

TEST_P(SelfConsistentPhononsOn, EveryRunHasTheSameBits) {
  const auto c = cubic_crystal(-1.0, kQuartic_ev_a4);
  const auto first = solve_with(c, 300.0, options_of(4), GetParam());
  const auto second = solve_with(c, 300.0, options_of(4), GetParam());
  EXPECT_EQ(first.iterations, second.iterations);
  for (std::size_t p = 0; p < first.correction.size(); ++p)
    EXPECT_EQ(first.correction[p].value_ev_a2, second.correction[p].value_ev_a2);
}

QUASI_ON_EVERY_DEVICE(SelfConsistentPhononsOn);

}  // namespace
}  // namespace quasi::thermal
