// A Hermitian W gives a Hermitian pole model, by the formulas of each element.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/gw/support/small_silicon.hpp"
#include "workers/gw/kernels/pole_sums/diagonal/gpp_diagonal_cpu.hpp"
#include "workers/gw/physics/coulomb.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"

namespace quasi::gw {
namespace {

EmpiricalCrystal crystal_of(const char* name) {
  EmpiricalCrystal crystal = test::SmallSilicon::small_crystal();
  crystal.name = name;
  if (crystal.name == "silicon")
    crystal.origin_shift = {0.13, 0.07, 0.21};  // no inversion about the origin: complex elements
  return crystal;
}

// Kernels sum one triangle of a model only where the other is its mirror image to 1e-13; complex
// elements near a threshold, and poles from near cancellations, were not until they were mirrored.
TEST(PlasmonPoleModel, IsHermitianToTheLastBit) {
  for (const char* name : {"silicon", "gaas"})
    for (const InvalidMode policy : {InvalidMode::kSkip, InvalidMode::kImaginary,
                                     InvalidMode::kTwoRydberg, InvalidMode::kStatic}) {
      test::SmallSilicon s(crystal_of(name));
      const auto two = s.screening(s.field, {Cplx{}, Cplx{0.0, 2.0}});
      for (const DielectricMatrix& epsilon : two) {
        const ScreeningAtQ at = screening_at(s.field, epsilon, 3.0, s.coulomb);
        const WingFactors wings = wing_factors(at.epsilon);
        const std::int64_t n = at.sphere.size();
        const PlasmonPoleModel hl = hybertsen_louie(s.field, at.epsilon, n, s.coulomb, wings,
                                                    policy),
                               gn = godby_needs(at.epsilon, n, s.coulomb, wings, policy, 2.0);
        for (const PlasmonPoleModel* model : {&hl, &gn}) {
          PlasmonPoleView looked_at = model->view();
          EXPECT_TRUE(looked_at.hermitian) << "kernels need not look";
          looked_at.hermitian = false;
          EXPECT_TRUE(is_hermitian(looked_at));
          for (std::int64_t g = 0; g < n; ++g)
            for (std::int64_t h = 0; h < g; ++h) {
              EXPECT_EQ(model->strength[static_cast<std::size_t>(g * n + h)],
                        std::conj(model->strength[static_cast<std::size_t>(h * n + g)]));
              EXPECT_EQ(model->pole_ry[static_cast<std::size_t>(g * n + h)],
                        model->pole_ry[static_cast<std::size_t>(h * n + g)]);
            }
          if (policy != InvalidMode::kImaginary) continue;
          // Both images of an imaginary pole, neighbours in the list.
          EXPECT_EQ(static_cast<std::int64_t>(model->imaginary.size()), model->invalid);
          for (std::size_t i = 0; i < model->imaginary.size(); ++i) {
            const ImaginaryPole& pole = model->imaginary[i];
            if (pole.g <= pole.h) continue;
            ASSERT_LT(i + 1, model->imaginary.size());
            const ImaginaryPole& image = model->imaginary[i + 1];
            EXPECT_EQ(image.g, pole.h);
            EXPECT_EQ(image.h, pole.g);
            EXPECT_EQ(image.half_i_v, std::conj(pole.half_i_v));
          }
        }
      }
    }
}

// Each element of both triangles by docs/theory/gw.md 6.2 from I = δ − ε⁻¹ of that element alone,
// where no threshold is near.
TEST(PlasmonPoleModel, EveryElementFollowsItsFormula) {
  test::SmallSilicon s(crystal_of("gaas"));
  const DielectricMatrix& epsilon = s.epsilon[1];
  const ScreeningAtQ at = screening_at(s.field, epsilon, 3.0, s.coulomb);
  const WingFactors wings = wing_factors(at.epsilon);
  const std::int64_t n = at.sphere.size();
  const auto part = screening_part(at.epsilon, 0, n, wings);
  const PlasmonPoleModel model =
      hybertsen_louie(s.field, at.epsilon, n, s.coulomb, wings, InvalidMode::kStatic);
  const GIndex index(s.field.density.header.g);
  const double plasma2 = 16.0 * kPi * s.field.n_electrons() / s.field.crystal().volume_bohr3;
  int compared = 0;
  for (std::int64_t g = 0; g < n; ++g)
    for (std::int64_t h = 0; h < n; ++h) {
      const IVec3 &gg = epsilon.sphere.g[static_cast<std::size_t>(g)],
                  &gh = epsilon.sphere.g[static_cast<std::size_t>(h)];
      const Cplx i = part[static_cast<std::size_t>(g * n + h)];
      const Cplx rho = s.field.density.values[0][static_cast<std::size_t>(index.find(gg - gh))];
      const Cplx omega2 =
          plasma2 * rho / s.field.n_electrons() *
          metric_dot(s.field.crystal().bdot, epsilon.q + to_real(gg), epsilon.q + to_real(gh)) *
          at.coulomb[static_cast<std::size_t>(g)] / kEightPi;
      const Cplx squared = omega2 / i;
      const double pole2 = std::norm(squared) / squared.real();
      if (std::abs(i) < 1e-5 || std::abs(squared.real()) < 1e-2 * std::abs(squared) || pole2 < 0.0)
        continue;
      const auto k = static_cast<std::size_t>(g * n + h);
      // Rounding of I, some 1e-16 of the head, against an element of 1e-5.
      EXPECT_NEAR(model.pole_ry[k], std::sqrt(pole2), 1e-8 * std::sqrt(pole2));
      EXPECT_LT(std::abs(model.strength[k] -
                         0.5 * std::sqrt(pole2) * at.coulomb[static_cast<std::size_t>(h)] * i),
                1e-8 * std::abs(model.strength[k]));
      ++compared;
    }
  EXPECT_GT(compared, 200);
}

// Far above every pole the screened exchange of an occupied band is −Ω²/x², Ω² of the density
// alone: nothing of ε⁻¹ is left (docs/theory/gw.md 13.8). Through the kernel, all valid elements;
// 1e-5: ω̃²/x² of the largest poles kept.
TEST(PlasmonPoleModel, FarAwayOnlyTheDensityIsSeen) {
  test::SmallSilicon s;
  const DielectricMatrix& epsilon = s.epsilon[1];
  const ScreeningAtQ at = screening_at(s.field, epsilon, 3.0, s.coulomb);
  const WingFactors wings = wing_factors(at.epsilon);
  const std::int64_t n = at.sphere.size();
  PlasmonPoleModel model =
      hybertsen_louie(s.field, at.epsilon, n, s.coulomb, wings, InvalidMode::kSkip);
  const GIndex index(s.field.density.header.g);
  const double plasma2 = 16.0 * kPi * s.field.n_electrons() / s.field.crystal().volume_bohr3,
               x = 1e4;
  std::vector<Cplx> m(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < m.size(); ++i)
    m[i] = std::polar(1.0 / (1.0 + static_cast<double>(i % 5)), 0.7 * static_cast<double>(i));
  Cplx expected;
  double absolute = 0.0;
  int kept = 0;
  for (std::size_t g = 0; g < static_cast<std::size_t>(n); ++g)
    for (std::size_t h = 0; h < static_cast<std::size_t>(n); ++h) {
      const std::size_t k = g * static_cast<std::size_t>(n) + h;
      if (model.strength[k] == Cplx{}) continue;
      if (model.pole_ry[k] > 20.0) {
        model.strength[k] = {};
        continue;
      }
      const IVec3 &gg = at.sphere.g[g], &gh = at.sphere.g[h];
      const Cplx rho = s.field.density.values[0][static_cast<std::size_t>(index.find(gg - gh))];
      const double product =
          metric_dot(s.field.crystal().bdot, epsilon.q + to_real(gg), epsilon.q + to_real(gh));
      const Cplx term = m[g] * plasma2 * rho / s.field.n_electrons() * product * at.coulomb[g] /
                        kEightPi * at.coulomb[h] * std::conj(m[h]);
      expected += term;
      absolute += std::abs(term);
      ++kept;
    }
  EXPECT_GT(kept, 100);
  const auto block = s.kernels->pair_products().make_block();
  block->load({m.data(), {1, 1, n}});
  const auto poles = s.kernels->pole_sums().load(model.view(), {});
  const std::vector<double> at_x{x}, occupied{1.0};
  std::vector<Cplx> total(1), sx(1);
  poles->add_diagonal(*block, {{at_x.data(), {1, 1, 1}}, {occupied.data(), {1}}, 1.0},
                      {{total.data(), {1, 1}}, {sx.data(), {1, 1}}});
  EXPECT_GT(std::abs(expected), 0.05 * absolute) << "a sum that cancels shows nothing";
  EXPECT_LT(std::abs(sx[0] * x * x + expected), 1e-5 * absolute);
}

}  // namespace
}  // namespace quasi::gw
