#include <gtest/gtest.h>

#include <cmath>

#include "tests/gw/reference_files.hpp"
#include "workers/gw/gw_calculation.hpp"

// ε⁻¹ at frequencies within a static subspace against the whole (property 10).
namespace quasi::gw {
namespace {

Calculation epsilon_with(const std::string& subspace) {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  const Deck deck = parse_deck(
      "stop_after = \"epsilon\"\n[meanfield]\nsource = \"epm\"\ncrystal = \"gaas\"\ncutoff_ry = 6.0\nk_grid = [2, 2, 2]\nbands = 20\n"
      "[epsilon]\ncutoff_ry = 4.0\nfrequencies = \"both\"\nreal_max_ev = 6.0\nreal_step_ev = 2.0\nimaginary_points = 8\n" + subspace, {}, "test", ".");
  return run_calculation(deck, *kernels, std::int64_t{1} << 30, silent);
}

/// Largest ‖ε̃⁻¹ − ε̃⁻¹'‖ (Frobenius, which bounds the spectral norm) over q, at one frequency.
double distance(const Calculation& a, const Calculation& b, std::size_t f) {
  double worst = 0.0;
  for (std::size_t iq = 0; iq < a.epsilon.size(); ++iq) {
    const DielectricMatrix& m = a.epsilon[iq];
    const auto n = static_cast<std::size_t>(m.size());
    double sum = 0.0;
    for (std::size_t g = 0; g < n; ++g)
      for (std::size_t h = 0; h < n; ++h)
        sum += std::norm((m.inverse[f][g * n + h] - b.epsilon[iq].inverse[f][g * n + h]) * std::sqrt(m.coulomb[h] / m.coulomb[g]));
    worst = std::max(worst, std::sqrt(sum));
  }
  return worst;
}

// 1e-9 and not 1e-10: wings at q₀ carry v(q₀) = 1e7, and the wedge of the whole differs in order from the full zone here.
TEST(Subspace, AllVectorsAreTheWhole) {
  const Calculation whole = epsilon_with("");
  for (const char* complement : {"true", "false"}) {
    const Calculation all = epsilon_with(std::string("subspace_vectors = 10000\nsubspace_complement = ") + complement + "\n");
    EXPECT_EQ(all.epsilon[0].subspace_vectors, static_cast<int>(all.epsilon[0].size()));
    EXPECT_LT(all.epsilon[0].subspace_error, 1e-9);
    for (std::size_t f = 0; f < whole.plan.epsilon.frequencies_ry.size(); ++f) EXPECT_LT(distance(whole, all, f), 1e-9) << f;
  }
}

TEST(Subspace, ErrorsDecayAndTheIndicatorBoundsThem) {
  const Calculation whole = epsilon_with("");
  double before = INFINITY, indicator_before = INFINITY;
  for (const int vectors : {6, 15, 30, 45}) {
    const std::string count = "subspace_vectors = " + std::to_string(vectors) + "\n";
    const Calculation plain = epsilon_with(count + "subspace_complement = false\n"), with = epsilon_with(count);
    double indicator = 0.0;
    for (const DielectricMatrix& m : plain.epsilon) indicator = std::max(indicator, m.subspace_error);
    EXPECT_LT(indicator, indicator_before);
    indicator_before = indicator;
    // Frequency 0 is the full matrix, always.
    EXPECT_LT(distance(whole, plain, 0), 1e-9);
    // The first imaginary point: |δ − ε̃⁻¹(iu)| falls with u, so that what is left out there is bounded by what is left out at 0,
    // times the √n between the norms.
    const double error = distance(whole, plain, 1), corrected = distance(whole, with, 1);
    EXPECT_LT(error, before);
    EXPECT_LT(error, indicator * std::sqrt(static_cast<double>(whole.epsilon[0].size())));
    EXPECT_LT(corrected, 0.5 * error) << "the complement recovers most of it";
    before = error;
  }
}

TEST(Subspace, ToleranceChoosesTheVectors) {
  const Calculation coarse = epsilon_with("subspace_tolerance = 0.2\n"), fine = epsilon_with("subspace_tolerance = 0.02\n");
  for (std::size_t iq = 0; iq < coarse.epsilon.size(); ++iq) {
    EXPECT_LT(coarse.epsilon[iq].subspace_vectors, fine.epsilon[iq].subspace_vectors);
    EXPECT_LT(fine.epsilon[iq].subspace_vectors, fine.epsilon[iq].size());
    // The largest left out is below the tolerance; coupling between kept and left out adds nothing for eigenvectors, and the exact
    // head at q → 0 little.
    EXPECT_LT(fine.epsilon[iq].subspace_error, 0.02 * (1.0 + 1e-6));
  }
}

}  // namespace
}  // namespace quasi::gw
