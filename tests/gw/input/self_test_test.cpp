// The engine's self-test: sound data pass every law, and each law notices one datum broken on
// purpose. The running gap.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/gw/support/small_silicon.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/calculation/self_test.hpp"

namespace quasi::gw {
namespace {

using Checks = std::map<std::string, SelfCheck>;

Checks checks_of(const test::SmallSilicon& s, const SigmaOptions& o) {
  SilentProgress silent;
  Checks checks;
  for (SelfCheck& check : check_screening(s.epsilon)) checks[check.name] = check;
  DeviceTeam team(*s.kernels);
  Checkpoint none;
  for (SelfCheck& check : check_mean_field(s.field, o, *s.kernels)) checks[check.name] = check;
  for (SelfCheck& check : check_states(s.field, s.epsilon, o, {s.coulomb, team, none, silent}))
    checks[check.name] = check;
  return checks;
}

/// All plane waves of a small sphere as bands, so that sums over bands are complete.
test::SmallSilicon complete_silicon() {
  EmpiricalCrystal crystal;
  crystal.wavefunction_cutoff_ry = 7.0;
  crystal.k_grid = {1, 1, 1};
  crystal.bands =
      static_cast<int>(make_g_sphere(test::SmallSilicon().field.crystal().bdot, {}, 7.0).size());
  return test::SmallSilicon(crystal);
}

TEST(SelfTest, SoundDataPass) {
  const test::SmallSilicon s;
  const Checks checks = checks_of(s, s.options());
  EXPECT_EQ(checks.size(), 8u);
  for (const auto& [name, check] : checks) {
    EXPECT_TRUE(check.passed()) << name << ' ' << check.value.value_or(0.0);
    EXPECT_TRUE(check.value.has_value()) << name;
  }
  EXPECT_LT(*checks.at("hermiticity").value, 1e-12);
  EXPECT_LT(*checks.at("multiplets").value, 1e-9);
  EXPECT_LT(*checks.at("density").value, 1e-12);
  EXPECT_GT(*checks.at("ch_truncation").value, 0.1);
  // The largest eigenvalue of ε̃ by Lanczos against the whole spectrum.
  double largest = 0.0;
  for (const DielectricMatrix& m : s.epsilon) {
    const auto n = static_cast<std::size_t>(m.size());
    std::vector<Cplx> matrix(n * n), vectors(n * n);
    std::vector<double> values(n);
    for (std::size_t g = 0; g < n; ++g)
      for (std::size_t h = 0; h < n; ++h)
        matrix[g * n + h] = m.inverse[0][g * n + h] * std::sqrt(m.coulomb[h] / m.coulomb[g]);
    s.kernels->dense().eigen_hermitian(view<const Cplx>(matrix, n, n), view<double>(values, n),
                                       view<Cplx>(vectors, n, n));
    largest = std::max(largest, 1.0 / values[0]);
  }
  EXPECT_NEAR(*checks.at("largest_epsilon").value, largest, 1e-9 * largest);
}

TEST(SelfTest, CompleteBandsCloseTheSums) {
  const test::SmallSilicon s = complete_silicon();
  const Checks checks = checks_of(s, s.options());
  // What plane waves beyond the cut-off would add: 1 % of the f-sum, 0.17 eV of CH (1.5 eV with 28
  // bands).
  EXPECT_NEAR(*checks.at("f_sum").value, 1.0, 0.02);
  EXPECT_LT(*checks.at("ch_truncation").value, 0.25);
  EXPECT_GE(*checks.at("ch_truncation").value, -1e-3);
}

/// The laws that fail after `damage`, which is then undone.
template <typename Damage>
std::vector<std::string> failing(test::SmallSilicon& s, Damage damage) {
  const MeanField field = s.field;
  const std::vector<DielectricMatrix> epsilon = s.epsilon;
  const SigmaOptions o = s.options();
  damage(s);
  std::vector<std::string> names;
  for (const auto& [name, check] : checks_of(s, o))
    if (!check.passed()) names.push_back(name);
  s.field = field;
  s.epsilon = epsilon;
  return names;
}

bool among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

TEST(SelfTest, EachLawNoticesItsBrokenDatum) {
  test::SmallSilicon sound, complete = complete_silicon();
  const auto element =
      failing(sound, [](test::SmallSilicon& s) { s.epsilon[1].inverse[0][3] += Cplx(0.0, 1e-3); });
  EXPECT_TRUE(among(element, "hermiticity"));
  const auto enhanced = failing(sound, [](test::SmallSilicon& s) {
    for (Cplx& value : s.epsilon[2].inverse[0]) value *= 1.5;
  });
  EXPECT_TRUE(among(enhanced, "smallest_epsilon"));
  EXPECT_FALSE(among(enhanced, "hermiticity"));
  const auto indefinite =
      failing(sound, [](test::SmallSilicon& s) { s.epsilon[1].inverse[0][0] = -0.1; });
  EXPECT_TRUE(among(indefinite, "largest_epsilon"));
  const auto norm = failing(sound, [](test::SmallSilicon& s) {
    for (std::size_t i = 0; i < s.field.waves.waves[0].g.size(); ++i)
      s.field.waves.waves[0].coefficients[0][i] *= 1.001;
  });
  EXPECT_TRUE(among(norm, "orthonormality"));
  const auto units = failing(sound, [](test::SmallSilicon& s) {
    for (double& e : s.field.waves.energy_ry)
      e *= kRydberg_ev;  // Electronvolts where Rydberg belong.
  });
  EXPECT_TRUE(among(units, "f_sum"));
  const auto density = failing(sound, [](test::SmallSilicon& s) {
    for (Cplx& value : s.field.density.values[0]) value *= 1.1;
  });
  EXPECT_EQ(density, std::vector<std::string>{"density"});
  // One state of every k mixed with another: orthonormal still, no longer symmetric.
  const auto mixed = failing(sound, [](test::SmallSilicon& s) {
    KPointWaves& at = s.field.waves.waves[0];
    const std::size_t n_pw = at.g.size();
    Cplx *a = at.coefficients[0].data() + 3 * n_pw, *b = at.coefficients[0].data() + 4 * n_pw;
    for (std::size_t i = 0; i < n_pw; ++i) {
      const Cplx old = a[i];
      a[i] = std::sqrt(0.9) * old + std::sqrt(0.1) * b[i];
      b[i] = std::sqrt(0.9) * b[i] - std::sqrt(0.1) * old;
    }
  });
  EXPECT_TRUE(among(mixed, "multiplets"));
  EXPECT_FALSE(among(mixed, "orthonormality"));
  const auto heavy = failing(complete, [](test::SmallSilicon& s) {
    KPointWaves& at = s.field.waves.waves[0];
    for (std::size_t i = 20 * at.g.size(); i < at.coefficients[0].size(); ++i)
      at.coefficients[0][i] *= 1.5;
  });
  EXPECT_TRUE(among(heavy, "ch_truncation"));
}

// Johnson's sum rule (property 5), whole: where every transition is left behind, χ is the density's
// answer alone,
//   u² (δ − ε̃⁻¹(iu))_GG' → ω_p² ρ(G−G')/ρ(0) cos∠(q+G, q+G'),
// with all bands and a local potential. It is also what the plasmon poles of Hybertsen and Louie
// are made from. What plane waves beyond the cut-off would add is below 3 % of ω_p² for the two
// shortest shells; the head would need more k than Γ, for the masses to average out. And as it is
// usually written: (2/π)∫ω Im ε⁻¹ dω = −ω_p².
TEST(SumRules, JohnsonForEveryElement) {
  test::SmallSilicon s = complete_silicon();
  const double u = 400.0, step = 0.02, eta = 0.02;
  std::vector<Cplx> frequencies{Cplx{}, Cplx(0.0, u)};
  for (int i = 0; i < 800; ++i) frequencies.emplace_back((i + 0.5) * step, eta);
  const DielectricMatrix m = s.screening(s.field, frequencies).front();
  const double plasma2 = 16.0 * kPi * s.field.n_electrons() / s.field.crystal().volume_bohr3;
  const Mat3& bdot = s.field.crystal().bdot;
  std::map<std::array<int, 3>, Cplx> rho;
  for (std::size_t i = 0; i < s.field.density.header.g.size(); ++i)
    rho[s.field.density.header.g[i]] = s.field.density.values[0][i];
  const auto n = static_cast<std::size_t>(m.size());
  double largest = 0.0;
  ASSERT_GE(n, 15u);
  for (std::size_t g = 1; g < 15; ++g)
    for (std::size_t h = 1; h < 15; ++h) {
      const Vec3 a = m.q + to_real(m.sphere.g[g]), b = m.q + to_real(m.sphere.g[h]);
      const double cosine =
          metric_dot(bdot, a, b) / std::sqrt(metric_dot(bdot, a, a) * metric_dot(bdot, b, b));
      const IVec3 between = m.sphere.g[g] - m.sphere.g[h];
      // χ_GG' carries M*(G)M(G'): the density at G' − G in our sign, its conjugate at G − G'.
      const Cplx expected = plasma2 * std::conj(rho.at(between)) / s.field.n_electrons() * cosine;
      const Cplx found =
          u * u *
          ((g == h ? 1.0 : 0.0) - m.inverse[1][g * n + h] * std::sqrt(m.coulomb[h] / m.coulomb[g]));
      EXPECT_LT(std::abs(found - expected), 0.03 * plasma2) << g << ' ' << h;
      if (g != h) largest = std::max(largest, std::abs(expected));
    }
  EXPECT_GT(largest, 0.1 * plasma2);
  double integral = 0.0;
  for (std::size_t i = 2; i < frequencies.size(); ++i)
    integral += 2.0 / kPi * frequencies[i].real() * m.inverse[i][n + 1].imag() * step;
  EXPECT_NEAR(integral, -plasma2, 0.03 * plasma2);
}

class Listening : public SilentProgress {
 public:
  void metric(std::string_view name, double value) override {
    seen[std::string(name)].push_back(value);
  }
  std::map<std::string, std::vector<double>> seen;
};

// A job says how its gap comes out so far; the last figure is the result's. It writes what the
// self-test found.
TEST(RunningGap, EndsAtTheResult) {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  Listening progress;
  const Calculation run = run_calculation(
      parse_deck("[meanfield]\nsource = \"epm\"\ncutoff_ry = 6.0\nk_grid = [2, 2, 2]\nbands = "
                 "18\n[epsilon]\ncutoff_ry = 3.0\n[sigma]\nband_max = 8\n",
                 {}, "test", "."),
      *kernels, std::int64_t{1} << 30, progress);
  const auto& gap = progress.seen["sigma_gap_ev"];
  ASSERT_EQ(gap.size(), run.epsilon.size() - 1) << "q → 0 alone says nothing; every further q does";
  const Quasiparticle *top = nullptr, *bottom = nullptr;
  for (const Quasiparticle& qp : run.quasiparticles) {
    if (qp.band <= 4 && (top == nullptr || qp.mean_field_ev > top->mean_field_ev)) top = &qp;
    if (qp.band > 4 && (bottom == nullptr || qp.mean_field_ev < bottom->mean_field_ev))
      bottom = &qp;
  }
  EXPECT_NEAR(gap.back(), bottom->sigma_ev - top->sigma_ev, 1e-9);
  // One of two further q for both: 0.3 eV; what has been summed alone would be 1.0 eV away.
  EXPECT_NEAR(gap.front(), gap.back(), 0.5);
  EXPECT_EQ(run.self_test.size(), 8u);
}

}  // namespace
}  // namespace quasi::gw
