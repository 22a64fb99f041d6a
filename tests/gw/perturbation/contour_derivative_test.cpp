// First orders of Σ by contour deformation: shares of the frequencies, jobs, subspaces of W.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/gw/support/small_silicon.hpp"
#include "tests/gw/support/written_out.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/perturbation/atom_displacement.hpp"
#include "workers/gw/solver/perturbation/contour_differences.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"

namespace quasi::gw {
namespace {

/// A W of one pole, S(ω) = Ω²/(Ω² − ω²), whose F is ½Ω/(x ± Ω).
struct OnePole {
  double pole_ry;

  /// Returns Σ_f share_f S(ω_f).
  double sum(const ContourGrid& grid, const std::vector<double>& shares) const {
    const double square = pole_ry * pole_ry;
    double value = 0.0;
    for (std::size_t j = 0; j < grid.imaginary_ry.size(); ++j)
      value += shares[j] * square / (square + grid.imaginary_ry[j] * grid.imaginary_ry[j]);
    for (std::size_t i = 0; i < grid.real_ry.size(); ++i)
      value += shares[grid.imaginary_ry.size() + i] * square /
               (square - grid.real_ry[i] * grid.real_ry[i]);
    return value;
  }
  double factor(double x_ry, bool occupied) const {
    return 0.5 * pole_ry / (x_ry + (occupied ? pole_ry : -pole_ry));
  }
  /// Returns [F(a) − F(b)]/(a − b) in closed form.
  double difference(double a_ry, double b_ry, bool occupied) const {
    return -2.0 * factor(a_ry, occupied) * factor(b_ry, occupied) / pole_ry;
  }
};

// Close pairs have the divided difference of the plasmon pole: those of one energy, those whose
// slope is taken between them, and those whose difference is formed, on either side of x = 0 and
// across it. x lies in the middle between points of the real axis, where chords have the slope of S
// to second order. At x = 0 half of a chord counts, whose slope errs by ½ 5e-4/Ω². The limit of
// 2e-4/Ry leaves 5e-5 for the integral of 120 points.
TEST(ContourDifferences, AreThoseOfOnePole) {
  ContourGrid grid{.imaginary_ry = imaginary_grid(120, 2.0), .real_ry = {}};
  for (int i = 0; i <= 2000; ++i) grid.real_ry.push_back(5e-4 * i);
  const ContourShares shares(grid);
  for (const double pole_ry : {1.3, 2.5})
    for (const bool occupied : {true, false})
      for (const double x_ry : {-0.80125, -0.02025, 0.0, 0.02025, 0.80125})
        for (const double gap_ry : {0.0, 3e-7, 8e-6, 9e-4}) {
          SCOPED_TRACE(std::to_string(pole_ry) + " " + std::to_string(x_ry) + " " +
                       std::to_string(gap_ry) + (occupied ? " occupied" : " empty"));
          const OnePole w{pole_ry};
          const double a_ry = x_ry + 0.5 * gap_ry, b_ry = x_ry - 0.5 * gap_ry;
          const double expected = w.difference(a_ry, b_ry, occupied);
          EXPECT_NEAR(w.sum(grid, shares.difference(a_ry, b_ry, occupied)), expected, 2e-4);
        }
}

// The slope of the integral is the limit of differences of the weights, whose rounding of 1e-15 a
// step of 1e-5 Ry enlarges to 1e-10. The limit is 1e-8.
TEST(ContourDifferences, SlopesAreLimitsOfDifferences) {
  for (const ImaginaryRule rule : {ImaginaryRule::kQuadratic, ImaginaryRule::kConstant}) {
    const std::vector<double> u = imaginary_grid(15, 2.0);
    for (const double x_ry : {-1.7, -0.013, 0.004, 0.6}) {
      const auto slope = contour_slopes(u, x_ry, rule);
      const double h = 1e-5 + 1e-3 * std::abs(x_ry);
      const auto at = [&](double x) { return contour_weights<double>(u, x, rule); };
      const auto up = at(x_ry + h), down = at(x_ry - h), up2 = at(x_ry + 2 * h),
                 down2 = at(x_ry - 2 * h);
      for (std::size_t j = 0; j < u.size(); ++j)
        EXPECT_NEAR(slope[j], (8.0 * (up[j] - down[j]) - (up2[j] - down2[j])) / (12.0 * h),
                    1e-8 * (1.0 + std::abs(slope[j])))
            << x_ry << " " << j;
    }
  }
}

// Factors of a part are those of each pair by itself: quotients and close pairs in the first half,
// pairs of one multiplet in the second. Across x = 0 W(0) alone takes the step of the integral.
TEST(ContourDifferences, MultipletsStandApart) {
  ContourGrid grid{.imaginary_ry = imaginary_grid(8, 2.0), .real_ry = {0.0, 0.1, 0.2, 0.5, 1.0}};
  const CoupledBands bra{{-0.3, -0.02, 0.4, 0.4}, {1, 1, 0, 0}},
      ket{{-0.3, -0.0198, 0.4, 0.41}, {1, 1, 0, 0}};
  const auto coupling = make_gw_kernels(find_device("cpu"))->hamiltonian().make_couplings();
  const BandRange part{1, 4};
  const FirstOrderPairs pairs{bra, ket, part, *coupling, 1.0};
  const std::vector<double> energies{-0.0199, 0.4};
  const ContourDifferences differences(grid, pairs, energies);
  const ContourShares shares(grid);
  std::vector<double> weight;
  for (std::size_t f = 0; f < differences.n_frequencies(); ++f)
    weight.push_back(std::cos(1.0 + static_cast<double>(f)));
  const std::vector<double> found = differences.of(weight);
  ASSERT_EQ(found.size(), 2u * 2u * 4u * 3u);
  for (std::size_t e = 0; e < 2; ++e)
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t j = 0; j < 3; ++j) {
        const auto n = static_cast<std::size_t>(part.begin) + j;
        const double a = energies[e] - ket.energy_ry[n], b = energies[e] - bra.energy_ry[i];
        const PairKind kind =
            pair_kind(bra, static_cast<std::int64_t>(i), ket, static_cast<std::int64_t>(n));
        std::vector<double> expected = shares.at(a, ket.occupation[n] > 0.5);
        if (kind == PairKind::kQuotient) {
          const std::vector<double> of_b = shares.at(b, bra.occupation[i] > 0.5);
          for (std::size_t f = 0; f < expected.size(); ++f)
            expected[f] = (expected[f] - of_b[f]) / (b - a);
        } else {
          expected = shares.difference(a, b, ket.occupation[n] > 0.5);
          EXPECT_EQ(expected[grid.imaginary_ry.size()], 0.0);
          EXPECT_LT(std::abs(expected[0]), 20.0) << "a step of 1 over 2e-4 Ry is 5000";
          for (double& value : expected) value = -value;
        }
        double sum = 0.0;
        for (std::size_t f = 0; f < expected.size(); ++f) sum += weight[f] * expected[f];
        const std::size_t at = i * 3 + j;
        const bool multiplet = kind == PairKind::kMultiplet;
        EXPECT_NEAR(found[e * 12 + at], multiplet ? 0.0 : sum, 1e-10) << e << i << j;
        EXPECT_NEAR(found[(2 + e) * 12 + at], multiplet ? sum : 0.0, 1e-10) << e << i << j;
      }
}

// ε⁻¹ in its static subspace and written out has one derivative, with residues. Parts inside
// and outside of the subspace and the diagonal part take other sums. 1e-12 Ry/Bohr: rounding.
TEST(ContourDerivative, InTheSubspaceIsThatOfTheWholeW) {
  test::SmallSilicon silicon;
  SigmaOptions options = silicon.options();
  options.method = SigmaMethod::kContour;
  options.slope = false;
  options.contour.imaginary_ry = imaginary_grid(8, 2.0);
  for (int i = 0; i <= 15; ++i) options.contour.real_ry.push_back(i / kRydberg_ev);
  EpsilonOptions wanted{
      .epsilon_cutoff_ry = 3.0,
      .bands = options.bands,
      .frequencies_ry = options.contour.frequencies_ry(0.1 / kRydberg_ev, 1e-4 / kRydberg_ev),
      .n_real = static_cast<int>(options.contour.real_ry.size())};
  wanted.subspace = {.tolerance = 0.0, .vectors = 8};
  SilentProgress silent;
  std::vector<DielectricMatrix> reduced, whole;
  for (const Vec3& q : screening_points(silicon.field)) {
    reduced.push_back(
        dielectric_matrix(silicon.field, q, wanted, silicon.coulomb, *silicon.kernels, silent));
    whole.push_back(test::written_out(reduced.back()));
  }
  const auto derivative = [&](const std::vector<DielectricMatrix>& epsilon) {
    return sigma_derivatives(silicon.field, epsilon, options,
                             {atom_displacement(test::SmallSilicon::small_crystal(),
                                                silicon.field.crystal(), 1, {0.0, 0.0, 1.0})},
                             {midgap_ry(silicon.field, 0) - 0.31},
                             {silicon.coulomb, *silicon.kernels, silent})[0];
  };
  const auto found = derivative(reduced), expected = derivative(whole);
  double largest = 0.0;
  for (std::size_t k = 0; k < found.size(); ++k)
    for (std::size_t i = 0; i < found[k].sigma.correlation.size(); ++i) {
      EXPECT_LT(std::abs(found[k].sigma.correlation[i] - expected[k].sigma.correlation[i]), 1e-12);
      EXPECT_LT(std::abs(found[k].sigma.fixed_energies[i] - expected[k].sigma.fixed_energies[i]),
                1e-12);
      largest = std::max(largest, std::abs(expected[k].sigma.correlation[i]));
    }
  EXPECT_GT(largest, 0.01);
}

const std::string kGallium =
    "[meanfield]\nsource = \"epm\"\ncrystal = \"gaas\"\ncutoff_ry = 5.0\nbands = 59\n"
    "[epsilon]\ncutoff_ry = 3.0\nreal_step_ev = 0.5\nimaginary_points = 12\n";

DisplacementElements displaced(const std::string& sigma, const std::string& step_bohr) {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  const std::string deck = kGallium + "[sigma]\nmethod = \"contour\"\nband_max = 5\n" + sigma +
                           "[perturbation]\natoms = [2]\ndirections = [\"z\"]\n"
                           "check_step_bohr = " +
                           step_bohr + "\n";
  return *run_calculation(parse_deck(deck, {}, "test", "."), *kernels, std::int64_t{1} << 30,
                          silent)
              .displacements;
}

double largest_deviation_ev(const DisplacementElements& found) {
  double largest = 0.0;
  for (const ElementsAtK& at : found.at[0]) {
    EXPECT_FALSE(at.difference.empty());
    largest = std::max(largest, largest_deviation_ry(at) * kRydberg_ev);
  }
  return largest;
}

// Jobs at the energies of the outer states, where x = 0 is in the sum: finite displacements at the
// stored W give ∂Σ within 1e-4 eV/Bohr, with W whole and in the subspace of Σ. The chord of the
// real axis at x = 0 leaves a deviation that is linear in h: 2e-5 eV/Bohr at 0.0025 Bohr.
TEST(ContourDerivative, FiniteDisplacementsGiveTheFirstOrder) {
  for (const char* sigma : {"", "subspace_vectors = 15\n"}) {
    SCOPED_TRACE(sigma);
    const double fine = largest_deviation_ev(displaced(sigma, "0.0025")),
                 coarse = largest_deviation_ev(displaced(sigma, "0.005"));
    EXPECT_LT(fine, 1e-4);
    EXPECT_LT(fine, 0.7 * coarse);
  }
}

// All vectors of the subspace of Σ hold all of W. 1e-9 Ry/Bohr: rounding of the projections.
TEST(ContourDerivative, AllVectorsOfTheSubspaceGiveTheWholeW) {
  const DisplacementElements whole = displaced("", "0"),
                             all = displaced("subspace_vectors = 10000\n", "0");
  double largest = 0.0;
  for (std::size_t i = 0; i < whole.at[0][0].sigma_bra.size(); ++i) {
    EXPECT_LT(std::abs(whole.at[0][0].sigma_bra[i] - all.at[0][0].sigma_bra[i]), 1e-9);
    EXPECT_LT(std::abs(whole.at[0][0].fixed_energies[i] - all.at[0][0].fixed_energies[i]), 1e-9);
    largest = std::max(largest, std::abs(whole.at[0][0].sigma_bra[i]));
  }
  EXPECT_GT(largest, 0.01);
}

}  // namespace
}  // namespace quasi::gw
