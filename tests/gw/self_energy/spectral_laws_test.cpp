// Laws of Σ(E) that need no reference: three ways to one number, the sum rule of A(ω), roots of
// known functions.

#include <gtest/gtest.h>

#include <cmath>

#include "workers/gw/physics/contour.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"

namespace quasi::gw {
namespace {

/// The built-in silicon on a grid coarse enough for seconds: the laws hold on any grid.
std::string deck(const std::string& method, const std::string& epsilon, const std::string& sigma) {
  return R"(
kind = "gw"
[meanfield]
source = "epm"
cutoff_ry = 6.0
k_grid = [2, 2, 2]
bands = 20
[epsilon]
cutoff_ry = 3.0
)" + epsilon +
         R"(
[sigma]
method = ")" +
         method + R"("
band_max = 8
kpoints = [[0.0, 0.0, 0.0]]
)" + sigma;
}

Calculation run(const std::string& text) {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  return run_calculation(parse_deck(text, {}, "test", "."), *kernels, std::int64_t{1} << 30,
                         silent);
}

// Contour deformation, the real axis and continuation from the imaginary one give the same Σ at the
// band edges (docs/theory/gw.md 13.9: 20 meV). Found here: 2 meV for the valence top; 4 and 17 meV
// for the conduction bottom.
TEST(SpectralLaws, ThreeWaysToTheSameNumber) {
  const Calculation contour = run(deck("contour", "imaginary_points = 24\n", ""));
  const Calculation real = run(deck("real-axis", "real_step_ev = 0.1\nbroadening_ev = 0.1\n", ""));
  const Calculation imaginary = run(deck("imaginary-axis", "imaginary_points = 24\n", ""));
  ASSERT_EQ(contour.quasiparticles.size(), 8u);
  for (std::size_t i = 1; i < 7; ++i) {
    EXPECT_NEAR(real.quasiparticles[i].sigma_ev, contour.quasiparticles[i].sigma_ev, 0.02) << i;
    EXPECT_NEAR(imaginary.quasiparticles[i].sigma_ev, contour.quasiparticles[i].sigma_ev, 0.02)
        << i;
    EXPECT_NEAR(real.quasiparticles[i].z, contour.quasiparticles[i].z, 0.02) << i;
    EXPECT_NEAR(imaginary.quasiparticles[i].z, contour.quasiparticles[i].z, 0.04) << i;
  }
}

// W of a single pole, S(ω) = Ω²/(Ω² − ω²): integral and residue together are the plasmon-pole term
// ½Ω/(x + Ω) of an occupied band, ½Ω/(x − Ω) of an empty one, for x of either sign; and for Ω far
// above x, the static limit, screened exchange and Coulomb hole, ½ and −½. Found: parabolas 3e-5
// with 40 points, constant rule 2.6e-4, and 6.6e-5 with 80.
TEST(SpectralLaws, ASinglePoleGivesThePlasmonPoleTerm) {
  const auto by_contour = [](double x, double pole, bool occupied, ImaginaryRule rule, int points) {
    const std::vector<double> u = imaginary_grid(points, pole);
    const auto weight = contour_weights<double>(u, x, rule);
    double sum = residue_sign(x, occupied) * pole * pole / (pole * pole - x * x);
    for (std::size_t j = 0; j < u.size(); ++j)
      sum += weight[j] * pole * pole / (pole * pole + u[j] * u[j]);
    return sum;
  };
  for (const double pole : {1.3, 4.0})
    for (const double x : {-2.7, -0.6, -1e-9, 1e-9, 0.4, 2.9})
      for (const bool occupied : {true, false}) {
        SCOPED_TRACE(std::to_string(pole) + " " + std::to_string(x) +
                     (occupied ? " occupied" : " empty"));
        // x of 1e-9 is 0⁺ whatever its sign: both sides of the step have one limit.
        const double exact = 0.5 * pole / (x + (occupied ? pole : -pole));
        EXPECT_NEAR(by_contour(x, pole, occupied, ImaginaryRule::kQuadratic, 40), exact, 5e-5);
        EXPECT_NEAR(by_contour(x, pole, occupied, ImaginaryRule::kConstant, 40), exact, 4e-4);
        EXPECT_NEAR(by_contour(x, pole, occupied, ImaginaryRule::kConstant, 80), exact, 1e-4);
      }
  for (const double x : {-0.5, 0.5}) {
    EXPECT_NEAR(by_contour(x, 1e5, true, ImaginaryRule::kQuadratic, 40), 0.5, 1e-5);
    EXPECT_NEAR(by_contour(x, 1e5, false, ImaginaryRule::kQuadratic, 40), -0.5, 1e-5);
  }
}

// Both rules of the imaginary integral converge to one value (docs/theory/gw.md 13.9); the
// parabolas from fewer points.
TEST(SpectralLaws, ImaginaryRulesConvergeTogether) {
  const auto at = [&](const std::string& rule, int points) {
    return run(deck("contour", "imaginary_points = " + std::to_string(points) + "\n",
                    "imaginary_rule = \"" + rule + "\"\n"))
        .quasiparticles[3]
        .sigma_ev;
  };
  const double best = at("quadratic", 96);
  const double coarse = std::abs(at("constant", 12) - best),
               fine = std::abs(at("constant", 96) - best);
  EXPECT_LT(fine, 0.25 * coarse);
  EXPECT_LT(fine, 5e-3);
  EXPECT_LT(std::abs(at("quadratic", 24) - best), 1e-3);
}

// ∫A(ω)dω = 1, because Σ is analytic off the real axis. V_xc is a toy here, chosen so that the
// quasiparticle sits at the mean-field energy. A deep and a band-edge state: the first's weight is
// spread over a satellite.
TEST(SpectralLaws, SpectralFunctionHasUnitWeight) {
  const Calculation result = run(
      deck("contour", "real_step_ev = 0.25\nbroadening_ev = 0.25\n",
           "spectrum_window_ev = 60.0\nspectrum_step_ev = 0.05\nspectrum_broadening_ev = 0.2\n"));
  ASSERT_FALSE(
      result.plan.notes
          .empty());  // The real grid was extended to what Σ needs, and the result says so.
  std::vector<std::vector<double>> toy(1);
  for (const Quasiparticle& qp : result.quasiparticles) toy[0].push_back(qp.sigma_ev);
  const SpectrumGrid grid{.window_ev = 60.0, .step_ev = 0.05, .broadening_ev = 0.2};
  const auto list = spectra(result.field, result.sigma, toy,
                            {.band_min = result.plan.sigma.band_min,
                             .band_max = result.plan.sigma.band_max,
                             .first_offset = result.plan.spectrum_offset,
                             .grid = grid});
  for (const Spectrum& s : list) {
    EXPECT_NEAR(s.norm, 1.0, 5e-3) << s.band_begin;
    // The quasiparticle is where V_xc put it; satellites add roots of smaller Z.
    ASSERT_TRUE(s.best.has_value());
    const double expected = result.field.waves.energy(0, 0, s.band_begin - 1) * kRydberg_ev;
    EXPECT_NEAR(s.best->energy_ev, expected, 5e-3) << s.band_begin;
    EXPECT_GT(s.best->z, 0.6);
    // Im Σ is positive below the gap and negative above it (time order); the linear interpolation
    // keeps that to 1e-3 eV.
    for (std::size_t e = 0; e < s.energy_ev.size(); ++e) {
      const double middle = midgap_ry(result.field, 0) * kRydberg_ev;
      EXPECT_GT(s.sigma_ev[e].imag() * (s.energy_ev[e] < middle ? 1.0 : -1.0), -1e-3)
          << s.energy_ev[e];
    }
  }
}

// Σ = a + bE crosses once, at E = (o + a)/(1 − b) with Z = 1/(1 − b); a pole between grid points
// gives a root on either side and, where E − Σ jumps from +∞ to −∞, no root that counts.
TEST(SpectralLaws, GraphicalRootsOfKnownFunctions) {
  std::vector<double> energy, line, pole;
  for (int i = 0; i <= 200; ++i) {
    const double e = -10.0 + 0.1 * i;
    energy.push_back(e);
    line.push_back(-1.5 - 0.25 * e);
    pole.push_back(1.0 / (e - 2.03));
  }
  const auto one = graphical_roots(energy, line, 4.0);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_NEAR(one[0].energy_ev, (4.0 - 1.5) / 1.25, 1e-12);
  EXPECT_NEAR(one[0].z, 0.8, 1e-12);
  // E = 1/(E − 2.03): two roots, 1.015 ± √(1.015² + 1), and the jump at the pole, which has no 0 <
  // Z ≤ 1.
  const auto two = graphical_roots(energy, pole, 0.0);
  int counted = 0;
  for (const Root& root : two) {
    if (root.z <= 0.0 || root.z > 1.0) continue;
    ++counted;
    const double expected =
        1.015 + (root.energy_ev < 0.0 ? -1.0 : 1.0) * std::sqrt(1.015 * 1.015 + 1.0);
    EXPECT_NEAR(root.energy_ev, expected, 2e-3);
  }
  EXPECT_EQ(counted, 2);
}

}  // namespace
}  // namespace quasi::gw
