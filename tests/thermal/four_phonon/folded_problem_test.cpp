// Tests what make_problem_4ph() prepares by symmetry: weights of partners and eigenvectors that
// inversion leaves unchanged (docs/theory/thermal.md 11.5).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <vector>

#include "tests/thermal/decks/model_deck.hpp"
#include "tests/thermal/four_phonon/solved_deck_4ph.hpp"
#include "workers/thermal/model/inversion.hpp"
#include "workers/units/constants.hpp"

namespace quasi::thermal {
namespace {

std::unique_ptr<test::SolvedDeck4ph> solved(const char* crystal) {
  return test::solve_deck_4ph(test::model(crystal),
                              {"ngrid=4,4,4", "scalebroad=0.05", "convergence=F", "T=300"});
}

/// Returns how many points have each point as the lowest of their images.
std::vector<int> orbits(const Symmetry& symmetry, std::int32_t point) {
  std::vector<int> count(static_cast<std::size_t>(symmetry.mesh.size()), 0);
  for (std::int64_t q = 0; q < symmetry.mesh.size(); ++q) {
    auto lowest = static_cast<std::int32_t>(q);
    for (std::size_t op = 0; op < symmetry.operations.size(); ++op)
      if (symmetry.fixes(point, static_cast<std::int64_t>(op), false))
        lowest = std::min(lowest, symmetry.image(q, static_cast<std::int64_t>(op)));
    ++count[static_cast<std::size_t>(lowest)];
  }
  return count;
}

TEST(FoldedPartners, StandForTheirOrbits) {
  for (const char* crystal : {"silicon-sw", "wurtzite-sw"}) {
    const auto deck = solved(crystal);
    const Problem4ph& problem = deck->four_phonon->problem;
    const auto n = static_cast<std::size_t>(problem.mesh.size());
    ASSERT_LT(problem.point.size(), n) << crystal;
    for (std::size_t i = 0; i < problem.point.size(); ++i) {
      const auto* weight = &problem.partner_weight[i * n];
      EXPECT_EQ(std::vector<int>(weight, weight + n), orbits(deck->deck.symmetry, problem.point[i]))
          << crystal << ", point " << problem.point[i];
    }
  }
}

using Complex = std::complex<double>;

/// Returns Θe, (Θe)(κ̄) = e(κ)* e^{−iq·L_κ}.
std::vector<Complex> reversed(const Problem4ph& problem, const Inversion& inversion, std::int64_t q,
                              const Complex* e) {
  int c[3];
  problem.mesh.coordinates(q, c);
  std::vector<Complex> result(3 * inversion.partner.size());
  for (std::size_t atom = 0; atom < inversion.partner.size(); ++atom) {
    double turns = 0.0;
    for (int i = 0; i < 3; ++i)
      turns += static_cast<double>(c[i] * inversion.shift[atom][i]) / problem.mesh.n[i];
    for (std::size_t x = 0; x < 3; ++x)
      result[3 * static_cast<std::size_t>(inversion.partner[atom]) + x] =
          std::conj(e[3 * atom + x]) * std::polar(1.0, -2.0 * units::kPi * turns);
  }
  return result;
}

Complex inner(const Complex* a, const Complex* b, std::size_t n) {
  Complex sum = 0.0;
  for (std::size_t x = 0; x < n; ++x) sum += std::conj(a[x]) * b[x];
  return sum;
}

/// Expects eigenvectors that inversion leaves unchanged, that are orthonormal, and that span the
/// degenerate sets of the modes. Tolerance: sums of six products of numbers of order one, rounded a
/// few times each.
void expect_turned(const test::SolvedDeck4ph& deck, const Inversion& inversion) {
  const Problem4ph& problem = deck.four_phonon->problem;
  const Modes& modes = deck.run.modes;
  const auto nb = static_cast<std::size_t>(problem.n_branches);
  for (std::int64_t q = 0; q < problem.mesh.size(); ++q) {
    const auto base = static_cast<std::size_t>(q) * nb;
    const Complex* turned = &problem.eigenvector[base * nb];
    for (std::size_t s = 0; s < nb; ++s) {
      const auto image = reversed(problem, inversion, q, turned + s * nb);
      for (std::size_t x = 0; x < nb; ++x)
        EXPECT_LT(std::abs(image[x] - turned[s * nb + x]), 1e-12) << "point " << q;
      double within = 0.0;
      for (std::size_t k = 0; k < nb; ++k) {
        EXPECT_LT(std::abs(inner(turned + s * nb, turned + k * nb, nb) - (k == s ? 1.0 : 0.0)),
                  1e-12);
        if (modes.subspace[base + k] == modes.subspace[base + s])
          within += std::norm(inner(&modes.eigenvector[(base + k) * nb], turned + s * nb, nb));
      }
      EXPECT_NEAR(within, 1.0, 1e-12) << "point " << q;
    }
  }
}

// The centre of silicon exchanges the atoms. That of rocksalt leaves them in place, the second one
// in another cell, so that Θ has a phase.
TEST(TurnedEigenvectors, AreUnchangedByInversionAndSpanTheirSets) {
  for (const char* crystal : {"silicon-sw", "rocksalt"}) {
    SCOPED_TRACE(crystal);
    const auto deck = solved(crystal);
    const auto inversion = find_inversion(deck->deck.crystal, 1e-6);
    ASSERT_TRUE(inversion.has_value());
    ASSERT_TRUE(deck->four_phonon->problem.plan.real_elements);
    expect_turned(*deck, *inversion);
  }
}

}  // namespace
}  // namespace quasi::thermal
