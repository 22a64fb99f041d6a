// Compares transforms of pseudopotentials with closed forms, and V_xc of libxc with the formula of
// Slater and with derivatives of energies.

#include <gtest/gtest.h>

#include "tests/gw/espresso/save_fixture.hpp"
#include "workers/gw/solver/mean_field/espresso/radial_transforms.hpp"

namespace quasi::gw {
namespace {

/// Returns a pseudopotential whose parts are Gaussians. The projectors are r^l exp(−r²/2), and
/// the core charge is 1.
Pseudopotential gaussian_model() {
  Pseudopotential pseudo;
  pseudo.valence = 3.0;
  for (int i = 0; i < 1201; ++i) {
    const double r = std::exp(-11.0 + 0.0116 * i);
    pseudo.r.push_back(r);
    pseudo.rab.push_back(0.0116 * r);
    pseudo.local_ry.push_back(-2.0 * pseudo.valence * std::erf(r / 0.8) / r);
    pseudo.core.push_back(std::exp(-r * r) / std::pow(kPi, 1.5));
  }
  for (int l = 0; l <= 3; ++l) {
    pseudo.projectors.push_back({l, {}});
    for (const double r : pseudo.r)
      pseudo.projectors.back().r_beta.push_back(std::pow(r, l + 1) * std::exp(-0.5 * r * r));
  }
  return pseudo;
}

// −2Z erf(r/a)/r has the transform −8πZ/G² e^{−G²a²/4}. At G = 0 it leaves 2πZa².
// The core charge has e^{−G²/4}.
TEST(RadialTransforms, LocalPartAndCoreAreThoseOfGaussians) {
  const Pseudopotential pseudo = gaussian_model();
  const std::vector<double> lengths{0.0, 0.3, 1.0, 2.5, 6.0};
  const auto local = local_form_factors(pseudo, lengths), core = core_form_factors(pseudo, lengths);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const double g2 = lengths[i] * lengths[i];
    const double wanted = i == 0 ? 2.0 * kPi * pseudo.valence * 0.64
                                 : -8.0 * kPi * pseudo.valence / g2 * std::exp(-0.16 * g2);
    // Simpson's rule on this grid has relative errors below 1e-8.
    EXPECT_NEAR(local[i], wanted, 1e-6) << lengths[i];
    EXPECT_NEAR(core[i], std::exp(-0.25 * g2), 1e-8) << lengths[i];
  }
}

// The transform of r^l e^{−r²/2} must be (2π)^{3/2} q^l e^{−q²/2}.
TEST(RadialTransforms, ProjectorsAreThoseOfGaussians) {
  const Pseudopotential pseudo = gaussian_model();
  for (std::size_t l = 0; l <= 3; ++l) {
    const RadialTable table(pseudo, l, 5.0);
    EXPECT_EQ(table.l(), static_cast<int>(l));
    for (const double q : {0.0, 0.013, 0.777, 2.345, 5.0}) {
      const double wanted =
          std::pow(2.0 * kPi, 1.5) * std::pow(q, static_cast<double>(l)) * std::exp(-0.5 * q * q);
      EXPECT_NEAR(table.at(q), wanted, 1e-7) << "l " << l << " q " << q;
    }
  }
}

// The harmonics must obey Σ_m Y_lm(a) Y_lm(b) = (2l+1)/4π P_l(a·b) for all directions a and b.
TEST(RadialTransforms, HarmonicsObeyTheAdditionTheorem) {
  const Vec3 a{0.3, -1.2, 0.7}, b{-0.4, 0.9, 2.1};
  const double x = dot(a, b) / std::sqrt(dot(a, a) * dot(b, b));
  const double legendre[] = {1.0, x, 0.5 * (3 * x * x - 1), 0.5 * (5 * x * x * x - 3 * x)};
  for (int l = 0; l <= 3; ++l) {
    double of_a[kMostComponents], of_b[kMostComponents], sum = 0.0;
    real_harmonics(l, a, of_a);
    real_harmonics(l, b, of_b);
    for (int m = 0; m < 2 * l + 1; ++m) sum += of_a[m] * of_b[m];
    EXPECT_NEAR(sum, (2 * l + 1) / (4.0 * kPi) * legendre[l], 1e-14) << l;
  }
}

TEST(RadialTransforms, BesselFunctionsAreContinuousWhereTheFormulaChanges) {
  for (int l = 0; l <= 3; ++l) {
    const double x = 0.3 + 0.5 * l, step = 1e-9;
    EXPECT_NEAR(spherical_bessel(l, x - step), spherical_bessel(l, x + step), 1e-9) << l;
  }
  EXPECT_NEAR(spherical_bessel(2, 1.0), 0.0620350520113738, 1e-15);
  EXPECT_NEAR(spherical_bessel(3, 2.0), 0.0607220976, 1e-10);
}

/// Evaluates the derivatives at one point of one or two spins.
std::vector<double> derivatives(XcFunctional functional, const std::vector<double>& density,
                                const std::vector<double>& gradient) {
  std::vector<double> by_density(density.size()), by_gradient(gradient.size());
  evaluate_functional(functional, {.n_spins = static_cast<int>(density.size()),
                                   .density = density,
                                   .gradient = gradient,
                                   .by_density = by_density,
                                   .by_gradient = by_gradient});
  by_density.insert(by_density.end(), by_gradient.begin(), by_gradient.end());
  return by_density;
}

// Exchange of Slater is V_x = −2 (3ρ/π)^{1/3} Ry. Correlation vanishes against it at high
// density.
TEST(XcFunctional, HighDensityIsThatOfSlater) {
  QUASI_NEED_LIBXC;
  const double rho = 1e9, exchange = -2.0 * std::cbrt(3.0 * rho / kPi);
  for (const XcFunctional f : {XcFunctional::kPerdewZunger, XcFunctional::kPerdewWang})
    EXPECT_NEAR(derivatives(f, {rho}, {})[0] / exchange, 1.0, 2e-3);
}

// A gas of two equal spins is that of one density, and a uniform gas has no gradient term.
TEST(XcFunctional, EqualSpinsAreOneDensity) {
  QUASI_NEED_LIBXC;
  for (const XcFunctional f :
       {XcFunctional::kPerdewZunger, XcFunctional::kPbe, XcFunctional::kPbesol}) {
    const bool gradient = uses_gradient(f);
    const auto one = derivatives(f, {0.04}, gradient ? std::vector{0.0012} : std::vector<double>{});
    const auto two = derivatives(f, {0.02, 0.02},
                                 gradient ? std::vector{3e-4, 3e-4, 3e-4} : std::vector<double>{});
    EXPECT_NEAR(one[0], two[0], 1e-12);
    EXPECT_NEAR(two[0], two[1], 1e-14);
    if (!gradient) continue;
    // σ = σ↑↑ + 2σ↑↓ + σ↓↓, so the derivatives along equal gradients add up.
    EXPECT_NEAR(2.0 * one[1], two[2] + 0.5 * two[3], 1e-12);
    const auto uniform = derivatives(f, {0.04}, {1e-3}), flat = derivatives(f, {0.04}, {1e-11});
    EXPECT_EQ(flat[1], 0.0);
    // Opposite gradients leave the density uniform, which correlation alone sees.
    const auto opposite = derivatives(f, {0.02, 0.02}, {3e-4, -3e-4, 3e-4});
    EXPECT_EQ(opposite[3], 0.0);
    EXPECT_NE(opposite[2], 0.0);
    EXPECT_NE(uniform[1], 0.0);
  }
}

// One of the two spins is empty and has no exchange. Its correlation is that of
// Perdew and Zunger with the interpolation of von Barth and Hedin, here for r_s > 1:
// V_c↓ = V_c(ferro) − 2 f'(1) [ε_c(ferro) − ε_c(para)].
TEST(XcFunctional, AnEmptySpinHasCorrelationAlone) {
  QUASI_NEED_LIBXC;
  const double rho = 1e-4, rs = std::cbrt(3.0 / (4.0 * kPi * rho)), root = std::sqrt(rs);
  const auto energy = [&](double gamma, double b1, double b2) {
    return gamma / (1.0 + b1 * root + b2 * rs);
  };
  const double para = energy(-0.1423, 1.0529, 0.3334), ferro = energy(-0.0843, 1.3981, 0.2611);
  const double potential = ferro * (1.0 + 7.0 / 6.0 * 1.3981 * root + 4.0 / 3.0 * 0.2611 * rs) /
                           (1.0 + 1.3981 * root + 0.2611 * rs);
  const double slope = 4.0 / 3.0 * std::cbrt(2.0) / (2.0 * std::cbrt(2.0) - 2.0);
  const auto found = derivatives(XcFunctional::kPerdewZunger, {rho, 0.0}, {});
  EXPECT_NEAR(found[0], 2.0 * (potential - std::cbrt(6.0 * rho / kPi)), 1e-7);
  EXPECT_NEAR(found[1], 2.0 * (potential - 2.0 * slope * (ferro - para)), 1e-6);
}

// Quantum ESPRESSO takes |ρ|: small negative densities of a Fourier sum give a finite potential.
TEST(XcFunctional, NegativeDensitiesCountByTheirModulus) {
  QUASI_NEED_LIBXC;
  EXPECT_EQ(derivatives(XcFunctional::kPerdewZunger, {-1e-3}, {})[0],
            derivatives(XcFunctional::kPerdewZunger, {1e-3}, {})[0]);
}

}  // namespace
}  // namespace quasi::gw
