// Tests phonons along a path against the mesh, against slopes and symmetry, and what a run writes.

#include "workers/thermal/solver/harmonic/dispersion.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numbers>
#include <numeric>
#include <random>

#include "tests/thermal/decks/checked_deck.hpp"
#include "tests/thermal/decks/model_deck.hpp"
#include "workers/backend/error.hpp"
#include "workers/io/hdf5.hpp"
#include "workers/thermal/solver/transport/subspace_conductivity.hpp"

namespace quasi::thermal {
namespace {

Dispersion along(const Deck& deck) {
  return dispersion_along(deck.control.path, deck.crystal, deck.second_order,
                          deck.control.harmonic_options());
}

std::size_t at(const Dispersion& d, std::int64_t point, int branch) {
  return static_cast<std::size_t>(point * d.n_branches + branch);
}

// Points of the path that lie on the mesh have its frequencies, velocities and rates.
TEST(DispersionOnPath, RepeatsTheMesh) {
  const auto s =
      test::solve_deck(test::silicon(), {"ngrid=8,8,8", "T=300", "convergence=F", "path_points=5",
                                         "path=G 0 0 0 X 0.5 0.5 0 | L 0.5 0.5 0.5 G 0 0 0"});
  const Dispersion d = along(s->deck);
  ASSERT_EQ(d.n_points(), 10);
  EXPECT_EQ(d.vertex_label, (std::vector<std::string>{"G", "X", "L", "G"}));
  EXPECT_EQ(d.vertex_point, (std::vector<std::int64_t>{0, 4, 5, 9}));
  const Transport transport = s->transport();
  const auto& rate = s->run.by_temperature[0].rate_per_ps;
  const auto rates = rates_along(d, transport, rate);
  const double top =
      *std::max_element(s->run.modes.omega_rad_ps.begin(), s->run.modes.omega_rad_ps.end());
  for (std::int64_t point = 0; point < d.n_points(); ++point) {
    int c[3];
    for (int x = 0; x < 3; ++x)
      c[x] = static_cast<int>(std::lround(8 * d.q_fractional[static_cast<std::size_t>(point)][x]));
    const std::int64_t q = (c[2] * 8 + c[1]) * 8 + c[0];
    for (int b = 0; b < d.n_branches; ++b) {
      const std::int64_t mode = q * d.n_branches + b;
      EXPECT_NEAR(d.omega_rad_ps[at(d, point, b)], s->run.modes.omega_rad_ps[mode], 1e-10 * top);
      for (int x = 0; x < 3; ++x)
        EXPECT_NEAR(d.velocity_km_s[at(d, point, b) * 3 + x],
                    s->run.modes.velocity_km_s[mode * 3 + x], 1e-5)
            << point << " " << b;
      if (q == 0) continue;
      const double expected =
          rate[static_cast<std::size_t>(s->deck.symmetry.star_of[q] * d.n_branches + b)];
      EXPECT_NEAR(rates[at(d, point, b)], expected, 1e-12 * expected);
    }
  }
}

// Between the points of the mesh a rate is the mean of logarithms.
TEST(DispersionOnPath, InterpolatesRates) {
  const auto s =
      test::solve_deck(test::silicon(), {"ngrid=4,4,4", "T=300", "convergence=F", "path_points=3",
                                         "path=A 0.25 0.25 0 X 0.5 0.5 0.25"});
  const Dispersion d = along(s->deck);
  const auto& rate = s->run.by_temperature[0].rate_per_ps;
  const auto rates = rates_along(d, s->transport(), rate);
  for (int b = 0; b < d.n_branches; ++b) {
    double logarithm = 0.0;
    for (int corner = 0; corner < 8; ++corner) {
      const int q = ((corner >> 2 & 1) * 4 + 1 + (corner >> 1 & 1)) * 4 + 1 + (corner & 1);
      logarithm +=
          std::log(rate[static_cast<std::size_t>(s->deck.symmetry.star_of[q] * d.n_branches + b)]) /
          8.0;
    }
    EXPECT_NEAR(rates[at(d, 1, b)], std::exp(logarithm), 1e-12 * rates[at(d, 1, b)]);
  }
}

// Paths that the space group makes equal have equal frequencies.
TEST(DispersionOnPath, EquivalentPathsAreEqual) {
  Deck deck =
      read_deck(test::silicon(), test::settings_of({"onlyharmonic=T", "path=G 0 0 0 X 0.5 0.5 0"}));
  const Dispersion one = along(deck);
  deck.control.path.vertices[1].q = {0.5, 0.0, 0.5};
  const Dispersion other = along(deck);
  ASSERT_EQ(one.n_points(), 101);
  for (std::size_t i = 0; i < one.omega_rad_ps.size(); ++i)
    EXPECT_NEAR(one.omega_rad_ps[i], other.omega_rad_ps[i], 1e-7);
  EXPECT_NEAR(one.distance_per_nm.back(), other.distance_per_nm.back(), 1e-12);
}

// The velocity along the path is the slope of ω, off the points where branches meet.
TEST(DispersionOnPath, VelocitiesAreSlopes) {
  const Deck deck =
      read_deck(test::silicon(), test::settings_of({"onlyharmonic=T", "path_points=4001",
                                                    "path=A 0.11 0.23 0.05 B 0.31 0.12 0.21"}));
  const Dispersion d = along(deck);
  const Mat3 to_cartesian = transpose(deck.crystal.reciprocal_per_nm());
  const Vec3 step = to_cartesian * (d.q_fractional.back() - d.q_fractional.front());
  const Vec3 direction = (1.0 / length(step)) * step;
  const double ds = d.distance_per_nm[1] - d.distance_per_nm[0];
  for (const std::int64_t point : {200, 1500, 3300})
    for (int b = 0; b < d.n_branches; ++b) {
      const double slope =
          (d.omega_rad_ps[at(d, point + 1, b)] - d.omega_rad_ps[at(d, point - 1, b)]) / (2 * ds);
      const double* v = &d.velocity_km_s[at(d, point, b) * 3];
      EXPECT_NEAR(dot(direction, {v[0], v[1], v[2]}), slope, 1e-5 * 10.0) << point << " " << b;
    }
}

// Both ends at Γ have the splitting of longitudinal and transverse waves, and each its direction.
TEST(DispersionOnPath, GammaOfPolarCrystalsHasADirection) {
  const Deck deck = read_deck(test::model("rocksalt"),
                              test::settings_of({"onlyharmonic=T", "path_points=11",
                                                 "path=X 0.5 0.5 0 G 0 0 0 L 0.5 0.5 0.5"}));
  const Dispersion d = along(deck);
  const Crystal& c = deck.crystal;
  const double mu = c.mass_amu[0] * c.mass_amu[1] / (c.mass_amu[0] + c.mass_amu[1]);
  const double splitting =
      deck.control.constants().born_charge_factor / (c.volume_nm3() * mu);  // Z = 1, ε = 1
  for (const std::int64_t point : {10, 11}) {
    for (int b = 0; b < 3; ++b) EXPECT_EQ(d.omega_rad_ps[at(d, point, b)], 0.0);
    const double low = d.omega_rad_ps[at(d, point, 3)], high = d.omega_rad_ps[at(d, point, 5)];
    EXPECT_NEAR(high * high - low * low, splitting, 1e-5 * splitting);
  }
}

// Bands pass through the crossing at X, where the order of the branches changes.
TEST(DispersionOnPath, BandsPassThroughCrossings) {
  const Deck deck =
      read_deck(test::silicon(),
                test::settings_of({"onlyharmonic=T", "path_points=201", "path=G 0 0 0 G2 1 1 0"}));
  const Dispersion d = along(deck);
  bool exchanged = false;
  for (std::int64_t point = 0; point < d.n_points(); ++point) {
    std::vector<std::int32_t> bands(d.band.begin() + point * d.n_branches,
                                    d.band.begin() + (point + 1) * d.n_branches);
    for (int b = 0; b < d.n_branches; ++b) exchanged |= bands[b] != b;
    std::sort(bands.begin(), bands.end());
    for (int b = 0; b < d.n_branches; ++b) ASSERT_EQ(bands[b], b);
  }
  EXPECT_TRUE(exchanged);
  // A band has no kink: its second difference is small. In the order of ω, LA and LO turn back at
  // X.
  double kink_band = 0.0, kink_order = 0.0;
  const auto omega_of = [&](std::int64_t point, int band) {
    for (int b = 0; b < d.n_branches; ++b)
      if (d.band[at(d, point, b)] == band) return d.omega_rad_ps[at(d, point, b)];
    return 0.0;
  };
  for (std::int64_t p = 90; p < 110; ++p)
    for (int b = 0; b < d.n_branches; ++b) {
      kink_band = std::max(kink_band,
                           std::fabs(omega_of(p + 1, b) - 2 * omega_of(p, b) + omega_of(p - 1, b)));
      kink_order = std::max(
          kink_order, std::fabs(d.omega_rad_ps[at(d, p + 1, b)] - 2 * d.omega_rad_ps[at(d, p, b)] +
                                d.omega_rad_ps[at(d, p - 1, b)]));
    }
  EXPECT_LT(kink_band, 0.1 * kink_order);
}

// Against all permutations.
TEST(DispersionOnPath, AssignmentIsTheBest) {
  std::mt19937 random(2);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  for (int draw = 0; draw < 50; ++draw) {
    std::vector<double> weight(25);
    for (double& w : weight) w = uniform(random);
    std::vector<int> order(5);
    std::iota(order.begin(), order.end(), 0);
    double best = 0.0;
    do {
      double sum = 0.0;
      for (int i = 0; i < 5; ++i) sum += weight[5 * i + order[i]];
      best = std::max(best, sum);
    } while (std::next_permutation(order.begin(), order.end()));
    const std::vector<int> found = best_assignment(5, weight);
    double sum = 0.0;
    for (int i = 0; i < 5; ++i) sum += weight[5 * i + found[i]];
    EXPECT_NEAR(sum, best, 1e-12);
  }
}

/// Expects a_i · q = 2π × reduced coordinate i for every point of the mesh.
void expect_cartesian_points(const H5Reader& result) {
  const auto lattice = result.doubles("/crystal/lattice");
  const auto reduced = result.doubles("/mesh/qpoint");
  const auto q = result.doubles("/mesh/q_cartesian_per_nm");
  ASSERT_EQ(q.size(), reduced.size());
  EXPECT_EQ(result.text_attribute("/mesh/q_cartesian_per_nm", "units"), "1/nm");
  for (std::size_t at = 0; at < q.size(); at += 3)
    for (std::size_t i = 0; i < 3; ++i) {
      const double* a = &lattice[3 * i];
      EXPECT_NEAR(a[0] * q[at] + a[1] * q[at + 1] + a[2] * q[at + 2],
                  2.0 * std::numbers::pi * reduced[at + i], 1e-12);
    }
}

/// Returns the mean over ±step of Σ_s [ω_s(q ± step) − ω̄(q)]² over the branches first … last−1,
/// whose mean at q is ω̄. The mean is exact where rounding of the constants splits a level.
double squared_changes(const Deck& deck, const Vec3& q, const Vec3& step, int first, int last) {
  PathOptions path{.vertices = {{"A", q - step, true}, {"B", q + step, false}}, .points = 3};
  const Dispersion d =
      dispersion_along(path, deck.crystal, deck.second_order, deck.control.harmonic_options());
  double level = 0.0, sum = 0.0;
  for (int s = first; s < last; ++s) level += d.omega_rad_ps[at(d, 1, s)] / (last - first);
  for (int s = first; s < last; ++s)
    for (const std::int64_t point : {0, 2})
      sum += 0.5 * std::pow(d.omega_rad_ps[at(d, point, s)] - level, 2);
  return sum;
}

// First-order perturbation theory: the squared slopes of the branches of one level along a
// direction add up to the trace of the squared velocity matrix, also where branches cross.
TEST(DispersionOnPath, SquaredSlopesAddUpToTheVelocityMatrixTrace) {
  const auto s = test::solve_deck(test::silicon(), {"ngrid=4,4,4", "T=300", "convergence=F"});
  const Modes& modes = s->run.modes;
  const auto trace = velocity_matrix_trace(s->deck.symmetry, modes);
  const Mat3 to_cartesian = transpose(s->deck.crystal.reciprocal_per_nm());
  const Vec3 step{2e-5, -1e-5, 3e-5};
  const Vec3 dq = to_cartesian * step;
  int levels = 0, crossings = 0;
  for (std::int64_t i = 0; i < s->deck.symmetry.n_irreducible(); ++i) {
    const std::int64_t point = s->deck.symmetry.irreducible[static_cast<std::size_t>(i)];
    if (point == 0) continue;
    int c[3];
    s->deck.symmetry.mesh.coordinates(point, c);
    const Vec3 q{c[0] / 4.0, c[1] / 4.0, c[2] / 4.0};
    const double* omega = &modes.omega_rad_ps[static_cast<std::size_t>(point * 6)];
    const std::int32_t* subspace = &modes.subspace[static_cast<std::size_t>(point * 6)];
    for (int first = 0, last = 0; first < 6; first = last) {
      for (last = first + 1; last < 6 && omega[last] - omega[first] < 1e-3;) ++last;
      double expected = 0.0, mean_part = 0.0;
      for (int b = first; b < last; ++b) {
        const auto members = std::count(subspace, subspace + 6, subspace[b]);
        expected += dot(dq, trace[static_cast<std::size_t>(i * 6 + b)] * dq) / members;
        const double* v = &modes.velocity_km_s[static_cast<std::size_t>((point * 6 + b) * 3)];
        mean_part += std::pow(dot(dq, Vec3{v[0], v[1], v[2]}), 2);
      }
      const double found = squared_changes(s->deck, q, step, first, last);
      EXPECT_NEAR(found, expected, 1e-5 * expected + 1e-5 * dot(dq, dq)) << point << " " << first;
      ++levels;
      crossings += expected > 1.01 * mean_part ? 1 : 0;
    }
  }
  EXPECT_GT(levels, 20);
  EXPECT_GT(crossings, 0) << "no subspace has branches of different slopes";
}

// A run writes the path, the wave vectors and the eigenvectors.
TEST(DispersionOnPath, RunWritesIt) {
  const quasi::test::TemporaryDirectory place;
  SilentProgress silent;
  RunOptions options{
      .deck = {.path = test::silicon(),
               .settings = test::settings_of({"ngrid=4,4,4", "T=300", "convergence=F",
                                              "path_points=11", "path=G 0 0 0 X 0.5 0.5 0"})},
      .devices = {Device{}},
      .output_directory = place.path(),
      .checkpoint_directory = place.path()};
  make_thermal_task()->run(options, silent);
  const H5Reader result(place.path() / "result.h5");
  EXPECT_EQ(result.shape("/path/label"), (std::vector<std::int64_t>{11}));
  EXPECT_EQ(result.shape("/path/omega"), (std::vector<std::int64_t>{11, 6}));
  EXPECT_EQ(result.shape("/path/velocity"), (std::vector<std::int64_t>{11, 6, 3}));
  EXPECT_EQ(result.shape("/path/rate"), (std::vector<std::int64_t>{1, 11, 6}));
  EXPECT_EQ(result.text_attribute("/path/omega", "units"), "rad/ps");
  const auto vectors = result.doubles("/modes/eigenvector");
  ASSERT_EQ(vectors.size(), 64u * 36u * 2u);
  double norm = 0.0;
  for (std::size_t i = 0; i < 12; ++i) norm += vectors[72 * 5 + i] * vectors[72 * 5 + i];
  EXPECT_NEAR(norm, 1.0, 1e-12);
  EXPECT_EQ(result.text_attribute("/modes/eigenvector", "phase"), "lattice vectors");
  EXPECT_EQ(result.text_attribute("/modes/eigenvector", "normalisation"), "unit");
  expect_cartesian_points(result);
  EXPECT_EQ(result.shape("/modes/subspace"), (std::vector<std::int64_t>{64, 6}));
  EXPECT_EQ(result.shape("/modes/velocity_matrix_trace"),
            (std::vector<std::int64_t>{result.shape("/mesh/irreducible")[0], 6, 3, 3}));
  std::ifstream text(place.path() / "dispersion.dat");
  std::string line;
  int rows = 0;
  while (std::getline(text, line)) rows += !line.empty() && line[0] != '#' ? 1 : 0;
  EXPECT_EQ(rows, 11);
  options.deck.settings.push_back({"eigenvector_limit_mib", "0.01"});
  make_thermal_task()->run(options, silent);
  EXPECT_FALSE(H5Reader(place.path() / "result.h5").has("/modes/eigenvector"));
}

TEST(DispersionOnPath, WrongPathsAreRefused) {
  const auto refusal = [](const std::string& path) -> std::string {
    try {
      read_deck(test::silicon(), test::settings_of({"onlyharmonic=T", "path=" + path}));
    } catch (const InvalidInput& failure) {
      return failure.what();
    }
    return "accepted";
  };
  EXPECT_NE(refusal("G 0 0 0").find("'G' alone"), std::string::npos);
  EXPECT_NE(refusal("G 0 0 0 X 0.5 0.5").find("followed by 2 values"), std::string::npos);
  EXPECT_NE(refusal("G 0 0 0 X 0.5 half 0").find("half"), std::string::npos);
  EXPECT_EQ(refusal("G 0 0 0 X 0.5 0.5 0"), "accepted");
}

}  // namespace
}  // namespace quasi::thermal
