// Laws of Σ and of what it is made of, on small built-in silicon: orthogonality after unfolding,
// sum rules with all bands, slopes by three rules, and the limits of the plasmon-pole model.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/gw/support/small_silicon.hpp"
#include "workers/gw/solver/mean_field/density.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"

namespace quasi::gw {
namespace {

using test::SmallSilicon;

// States that are unfolded to the whole zone stay normalised and orthogonal, and their occupied
// ones sum to ρ. M at q = G = 0 is δ_nm, and M_nm(k,q;G) = M*_mn(k−q,−q;−G).
TEST(Laws, UnfoldedStatesAndPairProducts) {
  SmallSilicon s;
  const MeanField& f = s.field;
  for (const ZonePoint& point : f.zone.points()) {
    const RotatedWaves w =
        rotated_waves(f.waves, f.zone.operations(), f.zone.rotation_to(point.k), 0, 0, 10);
    const std::size_t n_pw = w.g.size();
    for (std::size_t n = 0; n < 10; ++n)
      for (std::size_t m = 0; m < 10; ++m) {
        Cplx overlap;
        for (std::size_t x = 0; x < n_pw; ++x)
          overlap += std::conj(w.coefficients(n, x)) * w.coefficients(m, x);
        EXPECT_LT(std::abs(overlap - (n == m ? 1.0 : 0.0)), 1e-12);
      }
  }
  const auto rho = summed_density(f.waves, f.zone, {4}, f.density.header.g, *s.kernels);
  for (std::size_t i = 0; i < rho[0].size(); ++i)
    EXPECT_LT(std::abs(rho[0][i] - f.density.values[0][i]), 1e-12);

  const Vec3 k = f.zone.points()[5].k, q = f.zone.points()[3].k;
  const std::vector<IVec3> kept{{0, 0, 0}, {1, 0, 0}, {0, -1, 1}, {1, 1, 1}};
  const auto box = sum_box(f, {{2, 2, 2}});
  const auto products = [&](const Vec3& left, const Vec3& right, bool negative) {
    std::vector<std::int32_t> index;
    for (const IVec3& g : kept) index.push_back(box_position(negative ? -g : g, box));
    PairProductKernels& pairs = s.kernels->pair_products();
    const auto sphere = pairs.load_sphere(box, view<const std::int32_t>(index, kept.size()), {});
    const auto left_bands = load(*s.kernels, waves_at(f, left, 0, 0, 6, box));
    const auto right_bands = load(*s.kernels, waves_at(f, right, 0, 0, 6, box));
    const auto block = pairs.make_block();
    pairs.fill({*left_bands, {0, 6}}, {*right_bands, {0, 6}}, *sphere, *block);
    std::vector<Cplx> m(6 * 6 * kept.size());
    block->read(view<Cplx>(m, 6, 6, kept.size()));
    return m;
  };
  const auto forward = products(k, k - q, false), backward = products(k - q, k, true),
             same = products(k, k, false);
  for (std::size_t n = 0; n < 6; ++n)
    for (std::size_t m = 0; m < 6; ++m) {
      EXPECT_LT(std::abs(same[(n * 6 + m) * kept.size()] - (n == m ? 1.0 : 0.0)), 1e-12);
      for (std::size_t g = 0; g < kept.size(); ++g)
        EXPECT_LT(std::abs(forward[(n * 6 + m) * kept.size() + g] -
                           std::conj(backward[(m * 6 + n) * kept.size() + g])),
                  1e-12);
    }
}

// With all bands and a local potential Σ_c (E_c − E_v)|M_vc(q+G)|² is |q+G|² (the f-sum rule);
// plane waves beyond the cut-off would add less than 1 % here. With all bands of Γ alone the band
// sum of the static CH equals its closed form.
TEST(Laws, SumRulesWithAllBands) {
  EmpiricalCrystal crystal;
  crystal.wavefunction_cutoff_ry = 9.0;
  crystal.k_grid = {1, 1, 1};
  crystal.bands =
      static_cast<int>(make_g_sphere(SmallSilicon().field.crystal().bdot, {}, 9.0).size());
  SmallSilicon s(crystal);
  const MeanField& f = s.field;
  const std::vector<IVec3> kept{{1, 0, 0}, {0, 1, 1}, {1, 1, 1}};
  const auto box = sum_box(f, kept);
  std::vector<std::int32_t> index;
  for (const IVec3& g : kept) index.push_back(box_position(g, box));
  PairProductKernels& pairs = s.kernels->pair_products();
  const auto sphere = pairs.load_sphere(box, view<const std::int32_t>(index, kept.size()), {});
  const auto bands = load(*s.kernels, waves_at(f, {}, 0, 0, f.waves.n_bands, box));
  const std::int64_t n = f.waves.n_bands;
  const auto block = pairs.make_block();
  pairs.fill({*bands, {0, 4}}, {*bands, {0, n}}, *sphere, *block);
  std::vector<Cplx> m(static_cast<std::size_t>(4 * n) * kept.size());
  block->read(view<Cplx>(m, 4, n, kept.size()));
  for (std::size_t g = 0; g < kept.size(); ++g) {
    const Vec3 at = to_real(kept[g]);
    const double expected = metric_dot(f.crystal().bdot, at, at);
    for (std::size_t v = 0; v < 4; ++v) {
      double sum = 0.0;
      for (std::size_t c = 0; c < static_cast<std::size_t>(n); ++c)
        sum += (f.waves.energy(0, 0, static_cast<int>(c)) -
                f.waves.energy(0, 0, static_cast<int>(v))) *
               std::norm(m[(v * static_cast<std::size_t>(n) + c) * kept.size() + g]);
      EXPECT_NEAR(sum, expected, 0.02 * expected) << v << ' ' << g;
    }
  }
  SigmaOptions o = s.options();
  o.method = SigmaMethod::kCohsex;
  o.slope = false;
  const auto sums = s.sigma(o);
  for (std::size_t l = 0; l < 8; ++l)
    EXPECT_NEAR(sums[0].ch_static_ry[l].real() * kRydberg_ev,
                sums[0].ch_exact_ry[l].real() * kRydberg_ev, 2e-2)
        << l;
}

// Z by the analytic slope, by a central and by a forward difference of Σ. The central difference
// errs by h²Σ‴/6 with h = 0.02 eV; the error of the forward difference halves with the step. Only
// states next to the gap are compared: below them Σ has the steps of the rule that drops SX near
// poles.
TEST(Laws, SlopesByThreeRules) {
  test::SmallSilicon s;
  const auto z_by = [&](Derivative kind, double step_ev) {
    const DerivativeRule rule{kind, step_ev / kRydberg_ev};
    SigmaOptions o = s.options();
    o.kpoints = {0};
    o.slope = kind == Derivative::kAnalytic;
    o.offsets_ry = rule.offsets_ry();
    std::vector<double> z;
    for (const Quasiparticle& qp : quasiparticles(s.field, s.sigma(o), {}, o, rule, false))
      if (qp.band >= 2 && qp.band <= 7) z.push_back(qp.z);
    return z;
  };
  const auto exact = z_by(Derivative::kAnalytic, 0.0), central = z_by(Derivative::kCentral, 0.02),
             forward = z_by(Derivative::kForward, 0.02), wide = z_by(Derivative::kForward, 0.04);
  ASSERT_EQ(exact.size(), 6u);
  double one = 0.0, two = 0.0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    EXPECT_GT(std::abs(1.0 / exact[i] - 1.0), 0.05) << "a slope of nothing shows nothing";
    EXPECT_NEAR(central[i], exact[i], 2e-5) << i;
    one += std::abs(forward[i] - exact[i]);
    two += std::abs(wide[i] - exact[i]);
  }
  EXPECT_NEAR(two / one, 2.0, 0.1);
}

/// Screening of small silicon at ω = 0 and ω = 2i Ry, at the second q, and its Godby–Needs model.
struct GodbyNeedsFit {
  static constexpr double kFrequency_ry = 2.0;
  SmallSilicon s;
  ScreeningAtQ at;
  WingFactors wings;
  std::int64_t n;
  PlasmonPoleModel model;
  UnsetVector<Cplx> zero, imaginary;  ///< the matrices that the model is fitted to

  GodbyNeedsFit()
      : at(screening_at(s.field, s.screening(s.field, {Cplx{}, Cplx{0.0, kFrequency_ry}})[1], 3.0,
                        s.coulomb)),
        wings(wing_factors(at.epsilon)),
        n(at.sphere.size()),
        model(godby_needs(at.epsilon, n, s.coulomb, wings, InvalidMode::kStatic, kFrequency_ry)),
        zero(screening_part(at.epsilon, 0, n, wings)),
        imaginary(screening_part(at.epsilon, 1, n, wings)) {}

  double coulomb_of(std::size_t i) const { return at.coulomb[i % static_cast<std::size_t>(n)]; }
};

/// The model returns both matrices that it was fitted to, in the elements with a finite pole.
void expect_fits_both_matrices(const GodbyNeedsFit& fit) {
  int fitted = 0;
  for (std::size_t i = 0; i < fit.zero.size(); ++i) {
    const double pole = fit.model.pole_ry[i], v = fit.coulomb_of(i);
    if (fit.model.strength[i] == Cplx{} || pole >= kStaticPole_ry) continue;
    const Cplx from_model = 2.0 * fit.model.strength[i] / (pole * v);
    EXPECT_LT(std::abs(from_model - fit.zero[i]), 1e-12);
    EXPECT_LT(
        std::abs(from_model * pole * pole / (pole * pole + fit.kFrequency_ry * fit.kFrequency_ry) -
                 fit.imaginary[i]),
        1e-10);
    ++fitted;
  }
  EXPECT_GT(fitted, 100);
}

/// An element that does not change up to iω_a has its pole at infinity: it acts statically, and is
/// neither skipped nor invalid.
void expect_static_where_unchanged(const GodbyNeedsFit& fit) {
  DielectricMatrix frozen = fit.at.epsilon;
  frozen.inverse[1] = frozen.inverse[0];
  const PlasmonPoleModel unchanged =
      godby_needs(frozen, fit.n, fit.s.coulomb, fit.wings, InvalidMode::kSkip, fit.kFrequency_ry);
  EXPECT_EQ(unchanged.invalid, 0);
  for (std::size_t i = 0; i < fit.zero.size(); ++i) {
    EXPECT_EQ(unchanged.pole_ry[i], kStaticPole_ry);
    if (std::abs(fit.zero[i]) < 1e-6) continue;
    const double v = fit.coulomb_of(i);
    EXPECT_LT(std::abs(unchanged.strength[i] / (0.5 * kStaticPole_ry * v) - fit.zero[i]), 1e-14);
  }
}

/// Without an invalid mode all policies give one model. The head alone is never invalid.
void expect_policies_agree_on_the_head(const GodbyNeedsFit& fit) {
  const auto head = [&](InvalidMode policy) {
    return hybertsen_louie(fit.s.field, fit.at.epsilon, 1, fit.s.coulomb, fit.wings, policy);
  };
  const PlasmonPoleModel one = head(InvalidMode::kStatic);
  ASSERT_EQ(one.invalid, 0);
  for (const InvalidMode policy :
       {InvalidMode::kSkip, InvalidMode::kImaginary, InvalidMode::kTwoRydberg}) {
    const PlasmonPoleModel other = head(policy);
    EXPECT_EQ(other.strength, one.strength);
    EXPECT_EQ(other.pole_ry, one.pole_ry);
  }
}

/// For ω̃ → ∞ the sums of one block of products are SX − X = I and CH = −½ I with the quadratic
/// form I of W(0). This is static COHSEX.
void expect_static_cohsex(const GodbyNeedsFit& fit) {
  const std::int64_t n = fit.n;
  PlasmonPoleModel infinite = fit.model;
  const auto w = screened_matrix(fit.at, 0, fit.wings);
  for (std::size_t i = 0; i < w.size(); ++i) {
    infinite.pole_ry[i] = kStaticPole_ry;
    infinite.strength[i] = 0.5 * w[i] * kStaticPole_ry;
  }
  std::vector<Cplx> m(static_cast<std::size_t>(3 * n));
  for (std::size_t i = 0; i < m.size(); ++i)
    m[i] = std::polar(1.0 / (1.0 + static_cast<double>(i % 7)), 0.3 * static_cast<double>(i));
  const auto block = fit.s.kernels->pair_products().make_block();
  block->load({m.data(), {1, 3, n}});
  const auto poles = fit.s.kernels->pole_sums().load(infinite.view(), {});
  const std::vector<double> x{1.0, -0.2, -3.0}, occupation{1.0, 0.0, 0.0};
  std::vector<Cplx> total(1), sx(1), forms(3);
  poles->add_diagonal(*block, {{x.data(), {1, 3, 1}}, {occupation.data(), {3}}, 1.0},
                      {{total.data(), {1, 1}}, {sx.data(), {1, 1}}});
  block->quadratic_forms(view<const Cplx>(w, n, n), view<Cplx>(forms, 1, 3));
  EXPECT_LT(std::abs(sx[0] - forms[0]), 1e-11 * std::abs(forms[0]));
  EXPECT_LT(std::abs(total[0] - sx[0] + 0.5 * (forms[0] + forms[1] + forms[2])),
            1e-11 * std::abs(forms[0]));
}

// The plasmon-pole model in its limits.
TEST(Laws, PlasmonPoleLimits) {
  const GodbyNeedsFit fit;
  expect_fits_both_matrices(fit);
  expect_static_where_unchanged(fit);
  expect_policies_agree_on_the_head(fit);
  expect_static_cohsex(fit);
}

}  // namespace
}  // namespace quasi::gw
