// The graphical solution and the static remainder on numbers that a reader can check by hand: a
// mean field of four bands at Γ, whose middle two are degenerate, and a self-energy that is written
// down instead of calculated.

#include "workers/gw/solver/self_energy/graphical.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

namespace quasi::gw {
namespace {

constexpr int kBands = 4;
const SpectrumGrid kGrid{.window_ev = 4.0, .step_ev = 0.25, .broadening_ev = 0.1};

/// Bands of −10, −2, −2 and 3 eV; the lowest three are occupied.
MeanField four_bands() {
  SymmetryOperation identity;
  for (int i = 0; i < 3; ++i) identity.rotation[i][i] = 1;
  MeanField field{.waves = {},
                  .zone = BrillouinZone({Vec3{}}, {identity}, 1, "test"),
                  .shifted = {},
                  .shifted_zone = {},
                  .q_zone = {},
                  .nonlocal = {},
                  .density = {},
                  .n_occupied = 3,
                  .n_occupied_of_spin = {3}};
  field.waves.n_bands = kBands;
  field.waves.k = {Vec3{}};
  for (const double energy_ev : {-10.0, -2.0, -2.0, 3.0})
    field.waves.energy_ry.push_back(energy_ev / kRydberg_ev);
  return field;
}

SigmaOptions all_bands() {
  SigmaOptions options;
  options.band_min = 1;
  options.band_max = kBands;
  return options;
}

/// Σ(E_l + offset) = x + slope · offset + i · imaginary, eV, the first offset for E_qp1 and the
/// others for the spectrum. The parts of the static remainder differ from band to band.
SelfEnergyAtK linear_sigma(double x_ev, double slope, double imaginary_ev) {
  SelfEnergyAtK sum;
  std::vector<double> offsets{0.0};
  for (const double offset : kGrid.offsets_ry()) offsets.push_back(offset);
  for (int l = 0; l < kBands; ++l) {
    sum.x_ry.push_back(x_ev / kRydberg_ev);
    sum.slope.push_back(slope);
    sum.ch_exact_ry.emplace_back((1.0 + l) / kRydberg_ev, 0.3 / kRydberg_ev);
    sum.ch_static_ry.emplace_back((0.5 + 3.0 * l) / kRydberg_ev, 0.1 / kRydberg_ev);
  }
  for (const double offset : offsets) {
    sum.sx_ry.emplace_back(kBands, Cplx(0.25 * slope * offset, imaginary_ev / kRydberg_ev));
    sum.ch_ry.emplace_back(kBands, Cplx(0.75 * slope * offset, 0.0));
  }
  return sum;
}

std::vector<Spectrum> spectra_of(const MeanField& field, const SelfEnergyAtK& sigma,
                                 const std::vector<double>& vxc_ev, bool remainder) {
  return spectra(field, {sigma}, {vxc_ev},
                 {.band_min = 1,
                  .band_max = kBands,
                  .first_offset = 1,
                  .grid = kGrid,
                  .remainder = remainder});
}

std::vector<Quasiparticle> quasiparticles_of(const MeanField& field, const SelfEnergyAtK& sigma,
                                             const std::vector<double>& vxc_ev, bool remainder) {
  return quasiparticles(field, {sigma}, {vxc_ev}, all_bands(), {Derivative::kAnalytic}, remainder);
}

// The static remainder adds ½ (CH_exact − CH_partial) to Σ at every energy, averaged over the
// states of a multiplet.
TEST(Graphical, TheStaticRemainderCountsHalf) {
  const MeanField field = four_bands();
  const SelfEnergyAtK sigma = linear_sigma(-12.0, -0.25, 0.0);
  const std::vector<double> vxc(kBands, -11.0);
  const auto plain = spectra_of(field, sigma, vxc, false);
  const auto completed = spectra_of(field, sigma, vxc, true);
  // CH_exact − CH_partial of the bands: 0.5, −1.5, −3.5, −5.5 eV; of the doublet −2.5 eV.
  const double half_of_difference_ev[] = {0.25, -1.25, -2.75};
  ASSERT_EQ(plain.size(), 3u);
  ASSERT_EQ(completed.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t e = 0; e < plain[i].sigma_ev.size(); ++e) {
      const Cplx added = completed[i].sigma_ev[e] - plain[i].sigma_ev[e];
      EXPECT_NEAR(added.real(), half_of_difference_ev[i], 1e-12) << i << " " << e;
      EXPECT_NEAR(added.imag(), 0.1, 1e-12) << i << " " << e;
    }
  const auto list = quasiparticles_of(field, sigma, vxc, true);
  const int spectrum_of_band[] = {0, 1, 1, 2};
  for (std::size_t n = 0; n < list.size(); ++n) {
    const double half = half_of_difference_ev[spectrum_of_band[n]];
    EXPECT_NEAR(list[n].ch_ev - list[n].ch_bare_ev, half, 1e-12) << n;
    EXPECT_NEAR(list[n].sigma_ev, -12.0 + half, 1e-12) << n;
  }
}

// A Σ that is linear in E has one root, at the linearised energy; both solutions are one number.
TEST(Graphical, ALinearSelfEnergyHasTheLinearisedSolution) {
  const MeanField field = four_bands();
  const SelfEnergyAtK sigma = linear_sigma(-12.0, -0.25, 0.0);
  const std::vector<double> vxc{-11.0, -10.5, -11.5, -12.5};
  for (const bool remainder : {false, true}) {
    const auto list = quasiparticles_of(field, sigma, vxc, remainder);
    for (const Spectrum& s : spectra_of(field, sigma, vxc, remainder)) {
      const Quasiparticle& qp = list[static_cast<std::size_t>(s.band_begin - 1)];
      EXPECT_EQ(s.status, RootStatus::kUnique);
      ASSERT_TRUE(s.best.has_value());
      EXPECT_NEAR(s.best->energy_ev, *qp.qp1_ev, 1e-9);
      EXPECT_NEAR(s.best->z, 1.0 / 1.25, 1e-9);
      EXPECT_NEAR(qp.z, 1.0 / 1.25, 1e-12);
    }
  }
  // By hand: E_qp0 = −10 + 11 − 12, E_qp1 = −10 + 0.8 · (−11 + 10).
  const auto list = quasiparticles_of(field, sigma, vxc, false);
  EXPECT_NEAR(*list[0].qp0_ev, -11.0, 1e-12);
  EXPECT_NEAR(*list[0].qp1_ev, -10.8, 1e-12);
}

// The slopes by differences agree with the analytic one, whatever the step.
TEST(Graphical, SlopesByDifferencesOfALinearSelfEnergy) {
  const MeanField field = four_bands();
  const double step_ry = 0.3, slope = -0.4;
  for (const Derivative kind : {Derivative::kCentral, Derivative::kForward}) {
    const DerivativeRule rule{kind, step_ry};
    SelfEnergyAtK sigma = linear_sigma(-12.0, 0.0, 0.0);
    sigma.sx_ry.clear();
    sigma.ch_ry.clear();
    for (const double offset : rule.offsets_ry()) {
      sigma.sx_ry.emplace_back(kBands, Cplx(1.5 * slope * offset, 0.0));
      sigma.ch_ry.emplace_back(kBands, Cplx(-0.5 * slope * offset, 0.0));
    }
    for (const Quasiparticle& qp : quasiparticles(field, {sigma}, {}, all_bands(), rule, false))
      EXPECT_NEAR(qp.z, 1.0 / 1.4, 1e-12);
  }
}

// With a constant Σ, A(ω) is a Lorentzian of width |Im Σ| + broadening about E_mf − V_xc + Re Σ,
// and its norm is the trapezoidal sum over the window.
TEST(Graphical, AConstantSelfEnergyGivesALorentzian) {
  const MeanField field = four_bands();
  const auto list =
      spectra_of(field, linear_sigma(-12.0, 0.0, -0.7), std::vector<double>(kBands, -11.0), false);
  for (const Spectrum& s : list) {
    const double energy_ev = field.waves.energy(0, 0, s.band_begin - 1) * kRydberg_ev + 11.0 - 12.0;
    double norm = 0.0;
    for (std::size_t e = 0; e < s.energy_ev.size(); ++e) {
      const double away = s.energy_ev[e] - energy_ev;
      const double expected = 0.8 / (kPi * (away * away + 0.8 * 0.8));
      EXPECT_NEAR(s.spectral_per_ev[e], expected, 1e-12);
      if (e > 0) norm += 0.125 * (s.spectral_per_ev[e - 1] + s.spectral_per_ev[e]);
    }
    EXPECT_NEAR(s.norm, norm, 1e-12);
  }
}

// A root beyond the window is extrapolated up to one width of the window, 8 eV, and no farther, on
// either side.
TEST(Graphical, RootsBeyondTheWindow) {
  const MeanField field = four_bands();
  const SelfEnergyAtK sigma = linear_sigma(-12.0, -0.25, 0.0);
  const auto lowest = [&](double vxc_ev) {
    return spectra_of(field, sigma, std::vector<double>(kBands, vxc_ev), false)[0];
  };
  for (const double side : {-1.0, 1.0}) {
    const Spectrum outside = lowest(-12.0 - side * 1.25 * 11.5);
    EXPECT_EQ(outside.status, RootStatus::kExtrapolated);
    ASSERT_EQ(outside.roots.size(), 1u);
    EXPECT_NEAR(outside.roots[0].energy_ev, -10.0 + side * 11.5, 1e-9);
    const Spectrum too_far = lowest(-12.0 - side * 1.25 * 12.5);
    EXPECT_EQ(too_far.status, RootStatus::kNone);
    EXPECT_TRUE(too_far.roots.empty());
    EXPECT_FALSE(too_far.best.has_value());
  }
}

/// Σ with E − E_l − (Σ − x) = excess(E − E_l), eV, at the energies of the spectrum.
SelfEnergyAtK sigma_of_excess(double (*excess)(double offset_ev)) {
  SelfEnergyAtK sum = linear_sigma(-12.0, 0.0, 0.0);
  const std::vector<double> offsets = kGrid.offsets_ry();
  for (std::size_t e = 0; e < offsets.size(); ++e) {
    const double offset_ev = offsets[e] * kRydberg_ev;
    for (Cplx& value : sum.sx_ry[e + 1]) value = (offset_ev - excess(offset_ev)) / kRydberg_ev;
  }
  return sum;
}

// Of several roots the one of largest Z in (0, 1] is taken. Cubic interpolation is exact here, and
// Z is one over the slope of the excess.
TEST(Graphical, TheBestRootHasTheLargestWeightUpToOne) {
  const MeanField field = four_bands();
  const auto lowest = [&](const SelfEnergyAtK& sigma) {
    return spectra_of(field, sigma, std::vector<double>(kBands, -12.0), false)[0];
  };
  for (const double slope : {0.5, 2.0}) {  // Z = 2 and Z = −1: no quasiparticle
    const Spectrum s = lowest(linear_sigma(-12.0, slope, 0.0));
    ASSERT_EQ(s.roots.size(), 1u);
    EXPECT_NEAR(s.roots[0].z, 1.0 / (1.0 - slope), 1e-9);
    EXPECT_FALSE(s.best.has_value());
  }
  const Spectrum two =
      lowest(sigma_of_excess([](double o) { return 0.5 * (o + 2.1) * (o - 2.1); }));
  EXPECT_EQ(two.status, RootStatus::kMultiple);
  ASSERT_EQ(two.roots.size(), 2u);
  ASSERT_TRUE(two.best.has_value());
  EXPECT_NEAR(two.best->energy_ev, -7.9, 1e-9);
  EXPECT_NEAR(two.best->z, 1.0 / 2.1, 1e-9);
  // Slopes of the excess at the roots: 2.112, −0.96, 1.76 and, mirrored, 1.76, −0.96, 2.112.
  const Spectrum last =
      lowest(sigma_of_excess([](double o) { return 0.2 * (o + 2.1) * (o - 0.3) * (o - 2.3); }));
  const Spectrum first =
      lowest(sigma_of_excess([](double o) { return 0.2 * (o + 2.3) * (o + 0.3) * (o - 2.1); }));
  for (const Spectrum& s : {last, first}) {
    EXPECT_EQ(s.status, RootStatus::kMultiple);
    ASSERT_EQ(s.roots.size(), 3u);
    EXPECT_NEAR(s.roots[1].z, -1.0 / 0.96, 1e-9);
    ASSERT_TRUE(s.best.has_value());
    EXPECT_NEAR(s.best->z, 1.0 / 1.76, 1e-9);
  }
  EXPECT_NEAR(last.best->energy_ev, -7.7, 1e-9);
  EXPECT_NEAR(first.best->energy_ev, -12.3, 1e-9);
}

// In a loop over energies Σ is evaluated at the energies of G, and the mean field's own energies
// stay those of the equation.
TEST(Graphical, EnergiesOfTheMeanFieldAndOfGAreKeptApart) {
  MeanField field = four_bands();
  for (const double energy_ev : {-11.0, -2.5, -2.5, 2.0})
    field.reference_energy_ry.push_back(energy_ev / kRydberg_ev);
  const SelfEnergyAtK sigma = linear_sigma(-12.0, -0.25, 0.0);
  const std::vector<double> vxc(kBands, -11.0);
  // E_qp0 = −11 + 11 − 12 and E_qp1 = −10 + 0.8 · (−12 + 10).
  const Quasiparticle lowest = quasiparticles_of(field, sigma, vxc, false)[0];
  EXPECT_NEAR(lowest.mean_field_ev, -11.0, 1e-12);
  EXPECT_NEAR(*lowest.qp0_ev, -12.0, 1e-12);
  EXPECT_NEAR(*lowest.qp1_ev, -11.6, 1e-12);
  const Spectrum spectrum = spectra_of(field, sigma, vxc, false)[0];
  EXPECT_NEAR(spectrum.energy_ev.front(), -14.0, 1e-12);
  ASSERT_TRUE(spectrum.best.has_value());
  EXPECT_NEAR(spectrum.best->energy_ev, -11.6, 1e-9);
}

// The gap lies between the highest occupied and the lowest empty state, direct and over all k.
TEST(Graphical, GapsBetweenTheEdgesOfTheBands) {
  const MeanField field = four_bands();
  std::vector<Quasiparticle> list;
  const double energies_ev[2][kBands] = {{-10.0, -2.0, -1.0, 3.0}, {-9.0, -3.0, -2.5, 2.0}};
  for (int k = 0; k < 2; ++k)
    for (int n = 0; n < kBands; ++n) {
      Quasiparticle qp;
      qp.k_index = k;
      qp.band = n + 1;
      qp.mean_field_ev = energies_ev[k][n];
      qp.qp1_ev = energies_ev[k][n] + (n < 3 ? -0.5 : 0.25);
      list.push_back(qp);
    }
  const Gaps found = gaps(field, list);
  ASSERT_EQ(found.direct.size(), 2u);
  EXPECT_NEAR(found.direct[0].mean_field_ev, 4.0, 1e-12);
  EXPECT_NEAR(*found.direct[0].quasiparticle_ev, 4.75, 1e-12);
  EXPECT_NEAR(found.direct[1].mean_field_ev, 4.5, 1e-12);
  EXPECT_NEAR(*found.fundamental_mean_field_ev, 3.0, 1e-12);
  EXPECT_NEAR(*found.fundamental_ev, 3.75, 1e-12);
}

// The graphical solution replaces energy and Z of the states of its multiplet and of no others.
TEST(Graphical, TheSolutionGoesToItsOwnStates) {
  const MeanField field = four_bands();
  const std::vector<double> vxc(kBands, -11.0);
  const auto before = quasiparticles_of(field, linear_sigma(-12.0, -0.25, 0.0), vxc, false);
  auto after = before;
  Spectrum doublet{.k_index = 0, .spin = 1, .band_begin = 2, .band_end = 3};
  doublet.best = Root{1.75, 0.625};
  Spectrum elsewhere{.k_index = 1, .spin = 1, .band_begin = 1, .band_end = 4};
  elsewhere.best = Root{99.0, 0.5};
  Spectrum other_spin{.k_index = 0, .spin = 2, .band_begin = 1, .band_end = 4};
  other_spin.best = Root{99.0, 0.5};
  const Spectrum without_root{.k_index = 0, .spin = 1, .band_begin = 4, .band_end = 4};
  use_graphical_solution({doublet, elsewhere, other_spin, without_root}, after);
  for (const std::size_t n : {std::size_t{0}, std::size_t{3}}) {
    EXPECT_EQ(after[n].qp1_ev, before[n].qp1_ev) << n;
    EXPECT_EQ(after[n].z, before[n].z) << n;
  }
  for (const std::size_t n : {std::size_t{1}, std::size_t{2}}) {
    EXPECT_EQ(after[n].qp1_ev, 1.75) << n;
    EXPECT_EQ(after[n].z, 0.625) << n;
  }
}

}  // namespace
}  // namespace quasi::gw
