#include <gtest/gtest.h>

#include <cmath>

#include "tests/gw/support/small_silicon.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"

// q → 0 of crystals whose ε is a tensor: silicon and gallium arsenide, strained and turned.
namespace quasi::gw {
namespace {

constexpr Mat3 kAtRest{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
constexpr Mat3 kOrthorhombic{{{0.97, 0, 0}, {0, 1.02, 0}, {0, 0, 1.08}}};
constexpr Mat3 kTetragonal{{{1.01, 0, 0}, {0, 1.01, 0}, {0, 0, 1.08}}};
constexpr Mat3 kTriclinic{{{0.97, 0.03, -0.02}, {0.01, 1.02, 0.04}, {0.05, -0.01, 1.06}}};

Mat3 product(const Mat3& a, const Mat3& b) {
  Mat3 c{};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 3; ++k) c[i][j] += a[i][k] * b[k][j];
  return c;
}
Mat3 rotation() {  // by 0.4 about z, then by 0.7 about x
  const double c = std::cos(0.4), s = std::sin(0.4), d = std::cos(0.7), t = std::sin(0.7);
  return product({{{1, 0, 0}, {0, d, -t}, {0, t, d}}}, {{{c, -s, 0}, {s, c, 0}, {0, 0, 1}}});
}

struct Problem {
  std::unique_ptr<GwKernels> kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  MeanField field;
  EpsilonOptions options;
  CoulombInteraction coulomb;

  static EmpiricalCrystal crystal(const Mat3& deformation, const char* name, bool by_velocity,
                                  const Vec3& q0) {
    EmpiricalCrystal c = test::SmallSilicon::small_crystal();
    c.name = name;
    c.deformation = deformation;
    c.by_velocity = by_velocity;
    c.q0 = q0;
    return c;
  }
  explicit Problem(const Mat3& deformation, const char* name = "silicon", bool by_velocity = true,
                   const Vec3& q0 = {0.001, 0.0, 0.0})
      : field(empirical_mean_field(crystal(deformation, name, by_velocity, q0), *kernels, silent)),
        options{.epsilon_cutoff_ry = 3.0,
                .bands = band_count_without_split(field.waves, field.waves.n_bands, 5, "bands")},
        coulomb(field.crystal(), field.waves.k_grid, {}) {}
  DielectricMatrix at_zero() {
    return dielectric_matrix(field, field.q0, options, coulomb, *kernels, silent);
  }
  CMat3 tensor() { return at_zero().long_wave.at(0).epsilon; }
};

double largest_difference(const CMat3& a, const CMat3& b) {
  double worst = 0.0;
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) worst = std::max(worst, std::abs(a[i][j] - b[i][j]));
  return worst;
}

// Nothing is symmetrised here: what the crystal demands must come out by itself. 1e-8 (1e-12
// found).
TEST(LongWaveTensor, HasTheSymmetryOfTheCrystal) {
  for (const char* name : {"silicon", "gaas"}) {
    SCOPED_TRACE(name);
    const CMat3 cubic = Problem(kAtRest, name).tensor(),
                tetragonal = Problem(kTetragonal, name).tensor(),
                orthorhombic = Problem(kOrthorhombic, name).tensor();
    for (const CMat3& e : {cubic, tetragonal, orthorhombic})
      for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 3; ++j) {
          EXPECT_LT(std::abs(e[i][j].imag()), 1e-8);
          EXPECT_LT(i == j ? 0.0 : std::abs(e[i][j]), 1e-8);
        }
    EXPECT_LT(std::abs(cubic[0][0] - cubic[1][1]), 1e-8);
    EXPECT_LT(std::abs(cubic[0][0] - cubic[2][2]), 1e-8);
    EXPECT_LT(std::abs(tetragonal[0][0] - tetragonal[1][1]), 1e-8);
    EXPECT_GT(std::abs(tetragonal[0][0] - tetragonal[2][2]), 0.1);
    EXPECT_GT(std::abs(orthorhombic[0][0] - orthorhombic[1][1]), 0.1);
    EXPECT_GT(std::abs(orthorhombic[1][1] - orthorhombic[2][2]), 0.1);
  }
}

TEST(LongWaveTensor, TurnsWithTheCrystal) {
  const Mat3 r = rotation();
  const CMat3 rest = Problem(kTriclinic, "gaas").tensor(),
              turned = Problem(product(r, kTriclinic), "gaas").tensor();
  CMat3 expected{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      for (std::size_t a = 0; a < 3; ++a)
        for (std::size_t b = 0; b < 3; ++b) expected[i][j] += r[i][a] * rest[a][b] * r[j][b];
  EXPECT_LT(largest_difference(turned, expected), 1e-8);
  EXPECT_GT(largest_difference(turned, rest), 0.1);
  // With the group of the crystal it is the same, as it must be; a part that the group forbids is
  // taken out.
  Problem p(kOrthorhombic);
  const CMat3 e = p.tensor();
  const auto& group = p.field.crystal().symmetries;
  ASSERT_GT(group.size(), 1u);
  EXPECT_LT(largest_difference(with_symmetry_of(p.field.crystal(), group, e), e), 1e-8);
  CMat3 broken = e;
  broken[0][1] += 0.3;
  EXPECT_LT(largest_difference(with_symmetry_of(p.field.crystal(), group, broken), e), 1e-8);
}

// Against states at k + q₀ of a second set, along each axis and in a general direction, of a
// crystal without symmetry: heads at finite q₀ approach the tensor's as q₀², so that two of them
// extrapolate to it.
TEST(LongWaveTensor, IsTheLimitOfFiniteQ) {
  Problem limit(kTriclinic, "gaas");
  const DielectricMatrix m = limit.at_zero();
  const Crystal& crystal = limit.field.crystal();
  const auto axes = along_cartesian_axes(crystal, 1e-3);
  for (const Vec3& q : {axes[0], axes[1], axes[2], Vec3{0.0006, -0.0011, 0.0008}}) {
    const auto head = [&](double scale) {
      return Problem(kTriclinic, "gaas", false, scale * q).at_zero().inverse[0][0].real();
    };
    const double near = 1.0 / head(0.5), far = 1.0 / head(1.0),
                 extrapolated = (4.0 * near - far) / 3.0;
    const Vec3 unit = unit_direction(crystal, q);
    double expected = 0.0;
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = 0; j < 3; ++j)
        expected += unit[i] * m.long_wave[0].epsilon[i][j].real() * unit[j];
    EXPECT_NEAR(extrapolated, expected, 1e-5 * expected);
  }
}

/// ε̃⁻¹ = v^−½ ε⁻¹ v^½.
UnsetVector<Cplx> symmetrised(const DielectricMatrix& m, std::size_t frequency) {
  const auto n = static_cast<std::size_t>(m.size());
  UnsetVector<Cplx> room, matrix = inverse_of(m, frequency, room);
  for (std::size_t g = 0; g < n; ++g)
    for (std::size_t h = 0; h < n; ++h) matrix[g * n + h] *= std::sqrt(m.coulomb[h] / m.coulomb[g]);
  return matrix;
}

// The whole matrix of another direction, at frequencies on the axes and off them, within a static
// subspace too: 1e-10, rounding.
TEST(LongWaveTensor, EveryDirectionFollows) {
  for (const int vectors : {0, 12}) {
    SCOPED_TRACE(vectors);
    const Vec3 q{0.0004, -0.0009, 0.0007};
    Problem here(kTriclinic, "gaas"), there(kTriclinic, "gaas", true, q);
    for (Problem* p : {&here, &there}) {
      p->options.frequencies_ry = {Cplx{}, Cplx{0.0, 1.0}, Cplx{0.4, 0.05}};
      p->options.n_real = 1;
      p->options.subspace.vectors = vectors;
    }
    const DielectricMatrix known = here.at_zero(), made = there.at_zero();
    for (std::size_t f = 0; f < 3; ++f) {
      auto turned = symmetrised(known, f);
      const auto expected = symmetrised(made, f);
      double moved = 0.0;
      for (std::size_t i = 0; i < expected.size(); ++i)
        moved = std::max(moved, std::abs(turned[i] - expected[i]));
      EXPECT_GT(moved, 1e-3) << "the directions must differ, else nothing is shown";
      const ChangeOfDirection change =
          quasi::gw::turned(known.long_wave[f], unit_direction(here.field.crystal(), known.q),
                            unit_direction(here.field.crystal(), q));
      const auto n = static_cast<std::size_t>(known.size());
      for (std::size_t g = 0; g < n; ++g)
        change.apply(known.long_wave[f], g, turned.data() + g * n);
      for (std::size_t i = 0; i < expected.size(); ++i)
        ASSERT_LE(std::abs(turned[i] - expected[i]), 1e-10) << f << ' ' << i;
    }
  }
}

// A box's mini-zone: with p' = ε^½ p the average of 8π/(pεp) is that of 8π/p'² over the stretched
// box. And Σ_ij ε_ij ⟨p_i p_j/(pεp)⟩ = 1 for any ε.
TEST(LongWaveTensor, AveragesOverTheMiniZone) {
  const Vec3 edge{0.7, 1.0, 1.3}, e{9.0, 14.0, 11.0};
  Mat3 b{}, stretched_b{};
  CMat3 epsilon{};
  for (std::size_t i = 0; i < 3; ++i) {
    b[i][i] = edge[i];
    stretched_b[i][i] = edge[i] * std::sqrt(e[i]);
    epsilon[i][i] = e[i];
  }
  const MiniZone zone(b, 1.0, {2, 2, 2}), stretched_zone(stretched_b, 1.0, {2, 2, 2});
  const double expected = stretched_zone.inverse_square({});
  EXPECT_NEAR(average_of_screened(zone, epsilon).real(), expected, 1e-8 * expected);
  epsilon[0][1] = epsilon[1][0] = Cplx{0.7, 0.2};
  epsilon[1][2] = epsilon[2][1] = -1.1;
  const CMat3 average = average_of_directions(zone, epsilon);
  Cplx trace;
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) trace += epsilon[i][j] * average[i][j];
  EXPECT_LE(std::abs(trace - 1.0), 1e-12);
}

// Where ε is a number the average is what it was: ε⁻¹_00 v̄₀, and a third of the squared wings.
TEST(LongWaveTensor, OfACubicCrystalChangesNothing) {
  Problem p(kAtRest);
  DielectricMatrix m = p.at_zero();
  const auto with = screening_at(p.field, m, 3.0, p.coulomb);
  m.long_wave.clear();
  const auto without = screening_at(p.field, m, 3.0, p.coulomb);
  for (std::size_t i = 0; i < with.epsilon.inverse[0].size(); ++i)
    ASSERT_LE(std::abs(with.epsilon.inverse[0][i] - without.epsilon.inverse[0][i]), 1e-10) << i;
  EXPECT_TRUE(is_isotropic(p.field.crystal(), p.field.crystal().symmetries));
  for (const Mat3& strain : {kTetragonal, kOrthorhombic}) {
    const Problem other(strain);
    EXPECT_FALSE(is_isotropic(other.field.crystal(), other.field.crystal().symmetries));
  }
}

// From a deck: the summary's tensor of strained silicon; with states at k + q₀ instead of k·p the
// job says that it has one direction alone.
TEST(LongWaveTensor, IsInTheResultOfAStrainedCrystal) {
  const auto run = [](const std::string& more) {
    const auto kernels = make_gw_kernels(find_device("cpu"));
    SilentProgress silent;
    const Deck deck = parse_deck(
        "stop_after = \"epsilon\"\n[meanfield]\nsource = \"epm\"\ncutoff_ry = 6.0\nk_grid = [2, 2, "
        "2]\nbands = 18\nstretch = [1.01, 1.01, 1.08]\n" +
            more +
            "[epsilon]\ncutoff_ry = 3.0\nfrequencies = \"imaginary\"\nimaginary_points = 4\n",
        {}, "test", ".");
    return run_calculation(deck, *kernels, std::int64_t{1} << 30, silent);
  };
  const auto said = [](const Calculation& done) {
    int count = 0;
    for (const std::string& note : done.plan.notes)
      count += note.find("leaves ε a tensor") != std::string::npos ? 1 : 0;
    return count;
  };
  const Calculation kp = run(""), states = run("long_wave = \"states\"\n");
  EXPECT_EQ(said(kp), 0);
  EXPECT_EQ(said(states), 1);
  EXPECT_TRUE(states.epsilon[0].long_wave.empty());
  ASSERT_EQ(kp.epsilon[0].long_wave.size(), 4u);
  EXPECT_LT(largest_difference(kp.epsilon[0].long_wave[0].epsilon, Problem(kTetragonal).tensor()),
            1e-8);
  // Screening falls along the imaginary axis.
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t f = 1; f < 4; ++f)
      EXPECT_LT(kp.epsilon[0].long_wave[f].epsilon[i][i].real(),
                kp.epsilon[0].long_wave[f - 1].epsilon[i][i].real());
  EXPECT_THROW(
      parse_deck(
          "[meanfield]\nsource = \"epm\"\nstretch = [1, 1, 1.5]\n[epsilon]\ncutoff_ry = 3.0\n", {},
          "test", "."),
      InvalidInput);
}

// Σ must not depend on the direction that q₀ happens to have: 1e-9 eV. From one direction alone it
// does, by 2.8 meV here.
TEST(LongWaveTensor, SigmaDoesNotDependOnTheDirectionOfQ0) {
  const auto sigma = [](const Vec3& q0, bool all_directions) {
    Problem p(kTriclinic, "silicon", true, q0);
    std::vector<DielectricMatrix> epsilon;
    for (const Vec3& q : screening_points(p.field)) {
      epsilon.push_back(dielectric_matrix(p.field, q, p.options, p.coulomb, *p.kernels, p.silent));
      if (!all_directions) epsilon.back().long_wave.clear();
    }
    SigmaOptions o{.bands = p.options.bands,
                   .bare_cutoff_ry = 6.0,
                   .screened_cutoff_ry = 3.0,
                   .band_min = 1,
                   .band_max = 6,
                   .kpoints = {0},
                   .slope = true};
    std::vector<double> values;
    for (const Quasiparticle& qp : quasiparticles(
             p.field, self_energy(p.field, epsilon, o, {p.coulomb, *p.kernels, p.silent}), {}, o,
             {Derivative::kAnalytic, 0.0}, false))
      values.push_back(qp.sigma_ev);
    return values;
  };
  const Vec3 one{0.001, 0.0, 0.0}, other{0.0003, 0.0, -0.0008};
  const auto x = sigma(one, true), z = sigma(other, true), x_alone = sigma(one, false),
             z_alone = sigma(other, false);
  double by_direction = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(x[i], z[i], 1e-9) << i;
    by_direction = std::max(by_direction, std::abs(x_alone[i] - z_alone[i]));
  }
  EXPECT_GT(by_direction, 1e-3);
}

}  // namespace
}  // namespace quasi::gw
