// Two-component states of the built-in crystals (docs/theory/gw.md 15): closed forms of the
// spin–orbit splitting, time reversal, and rotations of spinors.

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "tests/gw/support/state_comparison.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/physics/spinor.hpp"
#include "workers/gw/solver/mean_field/empirical_pseudopotential.hpp"
#include "workers/gw/solver/mean_field/gauge.hpp"
#include "workers/gw/solver/mean_field/mean_field_checks.hpp"

namespace quasi::gw {
namespace {

constexpr double kLambda_ry_bohr2 = 2.2e-3;

EmpiricalCrystal crystal_of(const std::string& name, double cutoff_ry) {
  EmpiricalCrystal crystal;
  crystal.name = name;
  crystal.wavefunction_cutoff_ry = cutoff_ry;
  crystal.spin_orbit_ry_bohr2 = {kLambda_ry_bohr2, 3.0 * kLambda_ry_bohr2};
  if (name == "silicon") (*crystal.spin_orbit_ry_bohr2)[1] = kLambda_ry_bohr2;
  return crystal;
}

/// The lowest states of a built-in crystal.
class SpinorStates : public ::testing::Test {
 protected:
  DenseStates at(const EmpiricalCrystal& wanted, const Vec3& k, int n_bands) {
    return empirical_states(wanted, empirical_crystal(wanted), *kernels_)(k, 0, n_bands);
  }
  std::unique_ptr<GwKernels> kernels_ = make_gw_kernels(find_device("cpu"));
};

/// Returns the lower eigenvalue of H₀ + c A between the two functions Γ25' that the 15 plane
/// waves 000, 111 and 200 of silicon at Γ hold (docs/theory/gw.md 15.1).
double level_of_gamma25(double c) {
  const double u = std::pow(2.0 * kPi / 10.2612, 2);
  const auto b = [&](double k2) { return std::pow(1.0 + k2 / 2.0, -2); };
  const double b3 = b(3.0 * u), b4 = b(4.0 * u), lambda = c * kLambda_ry_bohr2 * u;
  const double m11 = 3.0 * u - 0.055 + 4.0 * lambda * b3 * b3,
               m22 = 4.0 * u + 8.0 * lambda * b4 * b4,
               m12 = std::sqrt(2.0) * (-0.224 - 0.072) + 4.0 * std::sqrt(2.0) * lambda * b3 * b4;
  return 0.5 * (m11 + m22) - std::sqrt(0.25 * (m11 - m22) * (m11 - m22) + m12 * m12);
}

// With 15 plane waves the splitting of Γ25' into Γ7 (twofold, l·σ = −2) and Γ8 (fourfold,
// l·σ = 1) has a closed form. Both sides are exact but for the rounding of the eigensolver,
// 1e-12 Ry or 1.4e-11 eV.
TEST_F(SpinorStates, SplittingOfGamma25HasTheClosedForm) {
  const DenseStates found = at(crystal_of("silicon", 2.0), {0, 0, 0}, 10);
  ASSERT_EQ(found.sphere.size(), 15);
  const double g7 = level_of_gamma25(-2.0), g8 = level_of_gamma25(1.0);
  EXPECT_GT(g8 - g7, 1e-3);
  for (std::size_t n : {2, 3}) EXPECT_NEAR(found.energy_ry[n], g7, 1e-12);
  for (std::size_t n : {4, 5, 6, 7}) EXPECT_NEAR(found.energy_ry[n], g8, 1e-12);
  EXPECT_GT(found.energy_ry[8], g8 + 1e-3);
}

// Γ8 − Γ7 of the valence bands and the gap Γ6 − Γ8 at Γ in eV, by a separate program of 40
// lines that builds H from Cartesian vectors and prints six and four digits.
TEST_F(SpinorStates, LevelsOfAnIndependentProgram) {
  struct Case {
    const char* name;
    double cutoff_ry, first, second, splitting_ev, gap_ev;
  };
  for (const Case& c : {Case{"silicon", 11.0, 0.0022, 0.0022, 0.043819, 3.3240},
                        {"germanium", 9.0, 0.013, 0.013, 0.297494, 1.1913},
                        {"gaas", 9.0, 0.0125, 0.0223, 0.342900, 1.0656},
                        {"insb", 9.0, 0.026, 0.035, 0.794505, 0.2860}}) {
    EmpiricalCrystal crystal = crystal_of(c.name, c.cutoff_ry);
    crystal.spin_orbit_ry_bohr2 = {c.first, c.second};
    const DenseStates found = at(crystal, {0, 0, 0}, 10);
    EXPECT_NEAR((found.energy_ry[4] - found.energy_ry[3]) * kRydberg_ev, c.splitting_ev, 6e-7);
    EXPECT_NEAR((found.energy_ry[8] - found.energy_ry[7]) * kRydberg_ev, c.gap_ev, 6e-5) << c.name;
  }
}

// Levels at λ = 0 are those of one component, each twice: 1e-12 Ry.
TEST_F(SpinorStates, WithoutCouplingEveryLevelIsDoubled) {
  for (const char* name : {"silicon", "gaas"}) {
    EmpiricalCrystal crystal = crystal_of(name, 6.0);
    const Vec3 k{0.31, 0.07, -0.22};
    crystal.spin_orbit_ry_bohr2 = {0.0, 0.0};
    const DenseStates doubled = at(crystal, k, 20);
    crystal.spin_orbit_ry_bohr2.reset();
    const DenseStates single = at(crystal, k, 10);
    for (std::size_t n = 0; n < 20; ++n)
      EXPECT_NEAR(doubled.energy_ry[n], single.energy_ry[n / 2], 1e-12);
  }
}

// Inversion and time reversal of silicon make every level even at every k: 7e-12 Ry = 1e-10 eV.
TEST_F(SpinorStates, KramersDoubletsAtEveryPoint) {
  for (const Vec3& k : {Vec3{0, 0, 0}, Vec3{0.31, 0.07, -0.22}, Vec3{0.5, 0.1, 0.4}}) {
    const DenseStates found = at(crystal_of("silicon", 6.0), k, 24);
    for (std::size_t n = 0; n < 24; n += 2)
      EXPECT_NEAR(found.energy_ry[n], found.energy_ry[n + 1], 7e-12) << n;
  }
}

/// Returns iσ_y c*(−G) on the sphere of −k.
std::vector<Cplx> reversed(const DenseStates& states, const GSphere& sphere) {
  const GIndex index(sphere.g);
  const std::size_t n_pw = states.sphere.g.size(), n = states.energy_ry.size();
  std::vector<Cplx> result(states.coefficients.size());
  for (std::size_t band = 0; band < n; ++band)
    for (std::size_t i = 0; i < n_pw; ++i) {
      const auto at = static_cast<std::size_t>(index.find(-states.sphere.g[i]));
      const Cplx* c = states.coefficients.data() + 2 * band * n_pw;
      result[2 * band * n_pw + at] = std::conj(c[n_pw + i]);
      result[(2 * band + 1) * n_pw + at] = -std::conj(c[i]);
    }
  return result;
}

// GaAs has no inversion, so that its levels split at a general k. iσ_y K takes the states at k to
// those at −k: energies to 1e-12 Ry, spans of multiplets to 1e-10.
TEST_F(SpinorStates, TimeReversalTakesStatesToMinusK) {
  const EmpiricalCrystal crystal = crystal_of("gaas", 6.0);
  const Vec3 k{0.31, 0.07, -0.22};
  const DenseStates here = at(crystal, k, 12), there = at(crystal, -1.0 * k, 12);
  EXPECT_GT(here.energy_ry[5] - here.energy_ry[4], 1e-6);
  test::expect_equal_states(here.energy_ry, reversed(here, there.sphere), there.energy_ry,
                            there.coefficients, 1e-12);
}

// A list that holds k alone is completed by the states at −k, which equal those of H there:
// energies to 1e-12 Ry, spans to 1e-10.
TEST_F(SpinorStates, ListsAreCompletedByTimeReversal) {
  const EmpiricalCrystal crystal = crystal_of("gaas", 6.0);
  const Vec3 k{0.31, 0.07, -0.22};
  const DenseStates here = at(crystal, k, 12), there = at(crystal, -1.0 * k, 12);
  Wavefunctions waves;
  waves.header.crystal = empirical_crystal(crystal);
  waves.header.crystal.symmetries = {
      {.rotation = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}, .translation = {}}};
  waves.header.n_spinor = 2;
  waves.n_bands = 12;
  waves.k = {k};
  waves.weight = {1.0};
  waves.first_occupied = {1};
  waves.last_occupied = {8};
  waves.energy_ry = here.energy_ry;
  waves.occupation.assign(12, 1.0);
  waves.waves.push_back({here.sphere.g, {here.coefficients}});
  ASSERT_EQ(complete_by_time_reversal(waves, 2), 1);
  const KPointWaves& made = waves.waves[1];
  const std::vector<Cplx>& c = made.coefficients[0];
  const GIndex index(there.sphere.g);
  const std::size_t n_pw = made.g.size();
  std::vector<Cplx> ordered(c.size());
  for (std::size_t row = 0; row < 24; ++row)
    for (std::size_t i = 0; i < n_pw; ++i)
      ordered[row * n_pw + static_cast<std::size_t>(index.find(made.g[i]))] = c[row * n_pw + i];
  test::expect_equal_states(here.energy_ry, ordered, there.energy_ry, there.coefficients, 1e-12);
}

// U(v·σ)U† = (Rv)·σ for the proper part R of every operation, with U unitary: 1e-14.
TEST(SpinRotations, RotateTheSpinVector) {
  const Crystal crystal = empirical_crystal(crystal_of("silicon", 6.0));
  ASSERT_EQ(crystal.symmetries.size(), 48u);
  const Vec3 v{0.3, -1.2, 0.7};
  for (const SymmetryOperation& s : crystal.symmetries) {
    const Mat3 r = cartesian_rotation(crystal, s.rotation);
    const double sign = determinant(s.rotation);
    const SpinMatrix u = spin_rotation(r), before = pauli(v), after = pauli(sign * multiply(r, v));
    for (std::size_t i = 0; i < 2; ++i)
      for (std::size_t j = 0; j < 2; ++j) {
        Cplx turned, norm;
        for (std::size_t a = 0; a < 2; ++a) {
          norm += u[i][a] * std::conj(u[j][a]);
          for (std::size_t b = 0; b < 2; ++b) turned += u[i][a] * before[a][b] * std::conj(u[j][b]);
        }
        EXPECT_LT(std::abs(turned - after[i][j]), 1e-14);
        EXPECT_LT(std::abs(norm - (i == j ? 1.0 : 0.0)), 1e-14);
      }
  }
}

// States at every image of a k-point by rotation of spinors equal those of H there: energies to
// 1e-12 Ry, spans to 1e-10. The crystals have fractional translations, improper operations, and
// levels that split without inversion.
TEST_F(SpinorStates, RotatedSpinorsAreEigenstates) {
  for (const char* name : {"silicon", "gaas"}) {
    const EmpiricalCrystal wanted = crystal_of(name, 4.0);
    const Crystal crystal = empirical_crystal(wanted);
    const Vec3 k{0.31, 0.07, -0.22};
    const DenseStates from = at(wanted, k, 12);
    Wavefunctions waves;
    waves.header.crystal = crystal;
    waves.header.n_spinor = 2;
    waves.n_bands = 12;
    waves.waves.push_back({from.sphere.g, {from.coefficients}});
    for (std::size_t s = 0; s < crystal.symmetries.size(); ++s) {
      const RotatedWaves rotated =
          rotated_waves(waves, crystal.symmetries,
                        {.irreducible = 0, .operation = static_cast<int>(s)}, 0, 0, 12);
      const DenseStates there = at(wanted, multiply(crystal.symmetries[s].rotation, k), 12);
      const GIndex index(there.sphere.g);
      const std::size_t n_pw = there.sphere.g.size();
      std::vector<Cplx> ordered(rotated.coefficients.size());
      for (std::size_t row = 0; row < 24; ++row)
        for (std::size_t i = 0; i < n_pw; ++i)
          ordered[row * n_pw + static_cast<std::size_t>(index.find(rotated.g[i]))] =
              rotated.coefficients.data[row * n_pw + i];
      test::expect_equal_states(from.energy_ry, ordered, there.energy_ry, there.coefficients,
                                1e-12);
    }
  }
}

// The derivative of the spin–orbit term with respect to k equals its central difference. The step
// of 1e-4 has errors of 1e-8 of the largest element.
TEST(SpinOrbitTerms, SlopeIsTheDifference) {
  const EmpiricalCrystal wanted = crystal_of("gaas", 3.0);
  const Crystal crystal = empirical_crystal(wanted);
  const SpinOrbitTerm term = spin_orbit_term(wanted, crystal);
  const Vec3 k{0.31, 0.07, -0.22}, d{0.2, 0.5, -0.4};
  const GSphere sphere = make_g_sphere(crystal.bdot, k, 3.0);
  const std::size_t size = 4 * sphere.g.size() * sphere.g.size();
  constexpr double kStep = 1e-4;
  std::vector<Cplx> plus(size), minus(size);
  term.add_to(k + kStep * d, sphere.g, plus.data());
  term.add_to(k - kStep * d, sphere.g, minus.data());
  const auto edge = static_cast<std::int64_t>(2 * sphere.g.size());
  std::vector<Cplx> unit(size), slope(size);
  for (std::size_t i = 0; i < size; i += static_cast<std::size_t>(edge) + 1) unit[i] = 1.0;
  const View<const Cplx, 2> rows{unit.data(), {edge, edge}};
  term.add_slope({k, sphere.g, rows, rows}, d, slope.data());
  double largest = 0.0;
  for (const Cplx& value : slope) largest = std::max(largest, std::abs(value));
  EXPECT_GT(largest, 1e-4);
  for (std::size_t i = 0; i < size; ++i)
    EXPECT_LT(std::abs((plus[i] - minus[i]) / (2.0 * kStep) - slope[i]), 1e-7 * largest);
}

// The gauge of a Kramers doublet depends on H alone: a doublet turned by a unitary matrix comes
// back to the same vectors, 1e-10.
TEST_F(SpinorStates, GaugeOfDoubletsIsUnique) {
  DenseStates states = at(crystal_of("silicon", 6.0), {0.31, 0.07, -0.22}, 8);
  std::vector<Cplx> turned = states.coefficients;
  const std::size_t row = states.row();
  const Cplx a = std::polar(0.6, 0.4), b = std::polar(0.8, -1.1);
  for (std::size_t n = 0; n < 8; n += 2)
    for (std::size_t i = 0; i < row; ++i) {
      Cplx &x = turned[n * row + i], &y = turned[(n + 1) * row + i];
      const Cplx first = a * x + b * y, second = -std::conj(b) * x + std::conj(a) * y;
      x = first;
      y = second;
    }
  fix_gauge(states.sphere.g, states.energy_ry, kDegenerateStates_ry, turned, 2);
  for (std::size_t i = 0; i < turned.size(); ++i)
    EXPECT_LT(std::abs(turned[i] - states.coefficients[i]), 1e-10);
}

}  // namespace
}  // namespace quasi::gw
