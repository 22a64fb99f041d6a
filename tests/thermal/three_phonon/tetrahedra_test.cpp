// Tests linear tetrahedra: weights of one, the divisions of a mesh, and what they keep.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <set>

#include "tests/oracle/thermal/oracle_tetrahedra.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/thermal/decks/model_deck.hpp"
#include "tests/thermal/support/solved_deck.hpp"
#include "tests/thermal/three_phonon/star_members.hpp"
#include "workers/thermal/kernels/three_phonon/tetrahedra/mesh_tetrahedra.hpp"
#include "workers/thermal/solver/harmonic/harmonic.hpp"
#include "workers/thermal/solver/harmonic/reduced_lattice.hpp"
#include "workers/units/constants.hpp"

namespace quasi::thermal {
namespace {

std::unique_ptr<test::SolvedDeck> silicon_on(const std::string& mesh) {
  return test::solve_deck(test::model("silicon-sw"),
                          {mesh, "T=300", "isotopes=F", "convergence=F", "allow_few_processes=T"});
}

/// Returns ∫ g(E) dE and ∫ E g(E) dE. Between neighbours of `breaks` g is a polynomial of
/// second degree, so that four Gauss points in each interval give both integrals exactly.
template <typename Function>
std::array<double, 2> moments(std::vector<double> breaks, const Function& g) {
  constexpr double kNode[2] = {0.3399810435848563, 0.8611363115940526};
  constexpr double kWeight[2] = {0.6521451548625461, 0.3478548451374538};
  std::sort(breaks.begin(), breaks.end());
  std::array<double, 2> result{};
  for (std::size_t i = 0; i + 1 < breaks.size(); ++i)
    for (const double side : {-1.0, 1.0})
      for (std::size_t k = 0; k < 2; ++k) {
        const double half = 0.5 * (breaks[i + 1] - breaks[i]);
        const double energy = breaks[i] + half * (1.0 + side * kNode[k]);
        const double weight = half * kWeight[k] * g(energy);
        result[0] += weight;
        result[1] += energy * weight;
      }
  return result;
}

/// Corner values, of which some are equal.
std::array<double, 4> random_corners(int draw, std::mt19937& random) {
  std::uniform_real_distribution<double> uniform(-2.0, 3.0);
  std::array<double, 4> f{};
  for (double& x : f) x = uniform(random);
  if (draw % 4 == 1) f[1] = f[0];
  if (draw % 4 == 2) f[2] = f[3];
  if (draw % 8 == 7) f[0] = f[1] = f[2];
  return f;
}

double weight_of(std::size_t corner, double energy, std::array<double, 4> f) {
  std::swap(f[0], f[corner]);
  return tetrahedron_weight(energy, f[0], f[1], f[2], f[3]);
}

// The moments of the weights are those of linear functions over a tetrahedron: ∫ w_i dE = 1/4 and
// ∫ E w_i dE = (f_i + Σ_j f_j)/20, also where corners have equal values.
TEST(Tetrahedron, WeightsHaveTheMomentsOfLinearFunctions) {
  std::mt19937 random(5);
  for (int draw = 0; draw < 200; ++draw) {
    const std::array<double, 4> f = random_corners(draw, random);
    const double sum = std::accumulate(f.begin(), f.end(), 0.0);
    for (std::size_t corner = 0; corner < 4; ++corner) {
      const auto [zeroth, first] =
          moments({f.begin(), f.end()}, [&](double e) { return weight_of(corner, e, f); });
      EXPECT_NEAR(zeroth, 0.25, 1e-12) << draw << " " << corner;
      EXPECT_NEAR(first, (f[corner] + sum) / 20.0, 1e-12) << draw << " " << corner;
    }
  }
  EXPECT_EQ(tetrahedron_weight(1.0, 1.0, 1.0, 1.0, 1.0), 0.0);
  EXPECT_EQ(tetrahedron_weight(1.0, 1.0, 1.0, 1.0 + 1e-10, 1.0 - 1e-10), 0.0);
}

// The formulas are those of the surface f = E: its area over the gradient, at its centre.
TEST(Tetrahedron, WeightsAreThoseOfTheSurface) {
  std::mt19937 random(6);
  std::uniform_real_distribution<double> uniform(-2.0, 3.0);
  int cut = 0;
  for (int draw = 0; draw < 2000; ++draw) {
    const std::array<double, 4> f = random_corners(draw, random);
    const double energy = uniform(random);
    const std::array<double, 4> expected = oracle::tetrahedron_weights(energy, f);
    for (std::size_t corner = 0; corner < 4; ++corner)
      EXPECT_NEAR(weight_of(corner, energy, f), expected[corner], 1e-9 * (1.0 + expected[corner]))
          << draw << " " << corner;
    cut += expected[0] > 0.0 ? 1 : 0;
  }
  EXPECT_GT(cut, 1000);
}

/// Frequencies of a mesh with the views that the weights need.
struct TetrahedraOfMesh {
  MeshTetrahedra shapes;
  std::vector<std::int32_t> neighbours;
  std::vector<double> omega;
  TetrahedraView3 view;
  QMesh mesh;

  TetrahedraOfMesh(const Mat3& steps, const QMesh& own_mesh, std::vector<double> omega_rad_ps,
                   int n_branches)
      : shapes(obtuse_superbases(steps)),
        neighbours(shapes.neighbours(own_mesh)),
        omega(std::move(omega_rad_ps)),
        view(shapes.view(omega.data(), neighbours.data(), nullptr, shapes.corners.data(),
                         n_branches)),
        mesh(own_mesh) {}
};

// The tetrahedra around all points fill the zone once: for every pair of branches ∫ dω Σ_q'
// δ(ω ± ω' − ω'') is the number of points, and the first moment is Σ_q' (ω'' ∓ ω').
TEST(Tetrahedra, FillTheZoneOnce) {
  const auto s = silicon_on("ngrid=3,4,5");
  const int nb = s->run.modes.n_branches;
  const TetrahedraOfMesh t(mesh_steps_per_nm(s->deck.crystal, s->problem.mesh), s->problem.mesh,
                           s->run.modes.omega_rad_ps, nb);
  const std::int64_t q0 = t.mesh.index(1, 2, 1);
  for (const Channel3 channel : {Channel3::kAbsorption, Channel3::kEmission})
    for (const auto& [s1, s2] : {std::pair{0, 3}, std::pair{2, 5}, std::pair{1, 1}}) {
      double points = 0.0, moment = 0.0, expected = 0.0;
      const int sign = channel == Channel3::kAbsorption ? 1 : -1;
      for (std::int64_t q1 = 0; q1 < t.mesh.size(); ++q1) {
        std::vector<double> f;
        int c[3];
        t.mesh.coordinates(q1, c);
        for (const Index3& p : t.shapes.point) {
          const std::int64_t near = t.mesh.index(c[0] + p[0], c[1] + p[1], c[2] + p[2]);
          f.push_back(t.omega[t.mesh.add(q0, near, sign) * nb + s2] -
                      sign * t.omega[near * nb + s1]);
        }
        expected += f[0];
        const auto [zeroth, first] = moments(f, [&](double omega) {
          return t.view.branch_delta_ps(channel, omega, q1 * nb + s1,
                                        t.mesh.add(q0, q1, sign) * nb + s2);
        });
        points += zeroth;
        moment += first;
      }
      EXPECT_NEAR(points / static_cast<double>(t.mesh.size()), 1.0, 1e-10);
      EXPECT_NEAR(moment, expected, 1e-8 * static_cast<double>(t.mesh.size()));
    }
}

/// Returns the density of states Σ_q δ(energy − ω)/N_q of a band ω = band(|q|) around q = 0.
/// It is computed as the joint density of this band and a flat band at 1, at 1 + energy.
double joint_density(const Mat3& reciprocal, int n, double energy,
                     const std::function<double(double)>& band) {
  const QMesh mesh{{n, n, n}};
  std::vector<double> omega;
  for (std::int64_t q = 0; q < mesh.size(); ++q) {
    int c[3];
    mesh.coordinates(q, c);
    double shortest = 1e300;
    for (const Index3& cell : {Index3{0, 0, 0},
                               {1, 0, 0},
                               {0, 1, 0},
                               {0, 0, 1},
                               {1, 1, 0},
                               {1, 0, 1},
                               {0, 1, 1},
                               {1, 1, 1}}) {
      Vec3 x{};
      for (int d = 0; d < 3; ++d) x[d] = double(c[d]) / n - cell[d];
      shortest = std::min(shortest, length(transpose(reciprocal) * x));
    }
    omega.push_back(1.0);
    omega.push_back(band(shortest));
  }
  Mat3 steps = reciprocal;
  for (Vec3& step : steps) step = (1.0 / n) * step;
  const TetrahedraOfMesh t(steps, mesh, omega, 2);
  double sum = 0.0;
  for (std::int64_t q = 0; q < mesh.size(); ++q)
    sum += t.view.branch_delta_ps(Channel3::kEmission, 1.0 + energy, 2 * q, 2 * mesh.minus(q) + 1);
  return sum / static_cast<double>(mesh.size());
}

// Joint densities in closed form, for a volume V of the zone: 2π√E/V of ω'' = q² and 4πE²/V
// of ω'' = |q|. The error falls with the square of the step, to less than a per cent at 32³.
TEST(Tetrahedra, HaveTheJointDensityOfKnownBands) {
  const Mat3 cubic = kIdentity;
  const Mat3 bcc{Vec3{-0.5, 0.5, 0.5}, Vec3{0.5, -0.5, 0.5}, Vec3{0.5, 0.5, -0.5}};
  const Mat3 skewed{Vec3{1.0, 0.0, 0.0}, Vec3{0.3, 1.1, 0.0}, Vec3{0.2, -0.2, 0.9}};
  double all_coarse = 0.0, all_fine = 0.0;
  for (const Mat3& lattice : {cubic, bcc, skewed}) {
    const double volume = std::fabs(determinant(lattice)), pi = units::kPi;
    for (const double radius : {0.23, 0.31}) {
      const auto error = [&](int n, bool square) {
        const double expected =
            square ? 2.0 * pi * radius / volume : 4.0 * pi * radius * radius / volume;
        const double found =
            square ? joint_density(lattice, n, radius * radius, [](double q) { return q * q; })
                   : joint_density(lattice, n, radius, [](double q) { return q; });
        return found / expected - 1.0;
      };
      for (const bool square : {true, false}) {
        const double coarse = error(16, square), fine = error(32, square);
        std::printf("    %s band, radius %.2f: error %.1e at 16³, %.1e at 32³\n",
                    square ? "square" : "linear", radius, coarse, fine);
        EXPECT_LT(std::fabs(fine), 8e-3);
        all_coarse += std::fabs(coarse);
        all_fine += std::fabs(fine);
      }
    }
  }
  EXPECT_LT(all_fine, 0.3 * all_coarse);
}

/// phonopy gives no weight to a tetrahedron with a corner exactly on the shell, as that of λ' at
/// rest has. So frequencies of λ are shifted by this.
constexpr double kOffShell_rad_ps = 1e-5;

/// Weights of phonopy for all processes of a point, in the order of phonopy_tetrahedra.py.
std::vector<double> weights_of_phonopy(const Mat3& steps, const TetrahedraOfMesh& t,
                                       std::int64_t q0) {
  const quasi::test::TemporaryDirectory place;
  std::vector<std::vector<double>> omega;
  const auto first = t.omega.begin() + q0 * t.view.nb;
  std::vector<double> energy(first, first + t.view.nb);
  for (double& e : energy) e += kOffShell_rad_ps;
  for (std::int64_t q = 0; q < t.mesh.size(); ++q)
    omega.emplace_back(t.omega.begin() + q * t.view.nb, t.omega.begin() + (q + 1) * t.view.nb);
  std::ofstream(place.path() / "mesh.json") << nlohmann::json{
      {"steps", steps}, {"mesh", t.mesh.n}, {"omega", omega}, {"q0", q0}, {"energy", energy}};
  const std::string command = std::string(QUASI_PYTHON) + " " + QUASI_PHONOPY_TETRAHEDRA + " " +
                              (place.path() / "mesh.json").string() + " " +
                              (place.path() / "weights.txt").string();
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  std::ifstream in(place.path() / "weights.txt");
  return {std::istream_iterator<double>(in), {}};
}

// The mesh of a face-centred crystal has one division, so weights are those of phonopy, whose
// tetrahedra phono3py uses. The tolerance is for frequencies that agree but for rounding.
TEST(Tetrahedra, AgreeWithPhonopy) {
  const auto s = silicon_on("ngrid=4,4,4");
  const int nb = s->run.modes.n_branches;
  const Mat3 steps = mesh_steps_per_nm(s->deck.crystal, s->problem.mesh);
  const TetrahedraOfMesh t(steps, s->problem.mesh, s->run.modes.omega_rad_ps, nb);
  ASSERT_EQ(t.shapes.corners.size(), 24u);
  const std::int64_t q0 = t.mesh.index(1, 2, 0);
  const std::vector<double> expected = weights_of_phonopy(steps, t, q0);
  ASSERT_EQ(expected.size(), static_cast<std::size_t>(2 * t.mesh.size() * nb * nb * nb));
  std::size_t at = 0, positive = 0;
  for (const Channel3 channel : {Channel3::kAbsorption, Channel3::kEmission})
    for (std::int64_t q1 = 0; q1 < t.mesh.size(); ++q1)
      for (int s1 = 0; s1 < nb; ++s1)
        for (int s2 = 0; s2 < nb; ++s2)
          for (int s0 = 0; s0 < nb; ++s0, ++at) {
            const std::int64_t q2 = t.mesh.add(q0, q1, static_cast<int>(channel));
            const double found = t.view.branch_delta_ps(
                channel, t.omega[q0 * nb + s0] + kOffShell_rad_ps, q1 * nb + s1, q2 * nb + s2);
            EXPECT_NEAR(found, expected[at], 1e-8 * (1e-3 + expected[at])) << at;
            positive += expected[at] > 0.0 ? 1 : 0;
          }
  EXPECT_GT(positive, 1000u);
}

// The weights keep one symmetry and lose another. Exchange of both created phonons changes nothing.
// A process seen from its other phonons is integrated over another wave vector, so its weights
// there agree on the mean alone: the collision operator is not symmetric.
TEST(Tetrahedra, AreSymmetricInCreatedPhonons) {
  const auto s = silicon_on("ngrid=6,6,6");
  const Modes& modes = s->run.modes;
  const int nb = modes.n_branches;
  const TetrahedraOfMesh t(mesh_steps_per_nm(s->deck.crystal, s->problem.mesh), s->problem.mesh,
                           modes.omega_rad_ps, nb);
  const auto delta = [&](Channel3 channel, std::int64_t m0, std::int64_t m1, std::int64_t m2) {
    return t.view.branch_delta_ps(channel, modes.omega_rad_ps[m0], m1, m2);
  };
  double sum = 0.0, reverse = 0.0, squared = 0.0, defect = 0.0;
  for (std::int64_t m0 = nb; m0 < modes.n_modes(); m0 += 41)
    for (std::int64_t m1 = nb; m1 < modes.n_modes(); m1 += 1) {
      const std::int64_t q2 = t.mesh.add(m0 / nb, m1 / nb, -1);
      for (std::int64_t m2 = q2 * nb; q2 > 0 && m2 < (q2 + 1) * nb; ++m2) {
        const double created = delta(Channel3::kEmission, m0, m1, m2);
        EXPECT_NEAR(created, delta(Channel3::kEmission, m0, m2, m1), 1e-10 * (1.0 + created));
        const double absorbed = delta(Channel3::kAbsorption, m2, m1, m0);
        sum += created;
        reverse += absorbed;
        squared += created * created;
        defect += (created - absorbed) * (created - absorbed);
      }
    }
  std::printf("    emission over absorption: %.4f; rms difference %.2f of rms weight\n",
              sum / reverse, std::sqrt(defect / squared));
  EXPECT_NEAR(sum / reverse, 1.0, 0.1);
  EXPECT_GT(defect, 0.01 * squared);
}

// Rates by tetrahedra are equal over a star, for the divisions have the symmetry of the mesh.
TEST(Tetrahedra, RatesAreEqualOverAStar) {
  for (const auto& [name, mesh] :
       {std::pair{"silicon-sw", "ngrid=6,6,6"}, std::pair{"wurtzite-sw", "ngrid=4,4,3"}}) {
    const auto s =
        test::solve_deck(test::model(name), {mesh, "T=300", "isotopes=F", "broadening=tetrahedra",
                                             "convergence=F", "allow_few_processes=T"});
    const ThreePhononProblem elsewhere = test::at_random_members(*s);
    const auto kernels = make_three_phonon_kernels(Device{});
    kernels->load(elsewhere);
    SilentProgress silent;
    const ThreePhononRates there = kernels->rates({300.0}, false, silent);
    const auto total = [&](const ThreePhononRates& r, const std::vector<std::int32_t>& rows) {
      std::vector<double> sum = r.absorption_per_ps;
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += r.emission_per_ps[i];
      average_over_subspaces(s->run.modes, rows, 1, sum.data());
      return sum;
    };
    const std::vector<double> a = total(s->run.three_phonon, s->problem.rows);
    const std::vector<double> b = total(there, elsewhere.rows);
    const double largest = *std::max_element(a.begin(), a.end());
    double worst = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i)
      if (a[i] > 1e-6 * largest) worst = std::max(worst, std::fabs(b[i] / a[i] - 1.0));
    EXPECT_LT(worst, 1e-7) << name;
    std::printf("    %s: worst rate difference over a star %.1e\n", name, worst);
  }
}

}  // namespace
}  // namespace quasi::thermal
