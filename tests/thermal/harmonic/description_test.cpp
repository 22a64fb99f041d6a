// Tests that κ does not depend on how a crystal is described: by which primitive cell, in which
// orientation, with which order of axes and atoms (docs/theory/thermal.md 4 and 12.3).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "tests/thermal/decks/model_deck.hpp"
#include "tests/thermal/support/other_description.hpp"
#include "tests/thermal/support/solved_deck.hpp"
#include "workers/thermal/solver/harmonic/reduced_lattice.hpp"
#include "workers/units/constants.hpp"

namespace quasi::thermal {
namespace {

using test::generic_rotation;
using test::model;
using test::OtherDescription;

double largest(const Mat3& m) {
  double most = 0.0;
  for (const Vec3& row : m)
    for (double x : row) most = std::max(most, std::fabs(x));
  return most;
}

double difference(const Mat3& a, const Mat3& b) {
  return largest({a[0] - b[0], a[1] - b[1], a[2] - b[2]}) / largest(a);
}

TEST(MeshMetric, IsAPropertyOfTheLattice) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> element(-1.0, 1.0);
  std::uniform_int_distribution<int> axis(0, 2), factor(-2, 2);
  int n_skewed = 0;
  for (int trial = 0; trial < 300; ++trial) {
    Mat3 lattice;
    for (Vec3& row : lattice)
      for (double& x : row) x = element(random);
    if (std::fabs(determinant(lattice)) < 0.02) continue;
    const Mat3 m = mesh_metric(lattice);
    Mat3 other = lattice;
    for (int step = 0; step < 8; ++step) {
      const int to = axis(random);
      const int from = (to + 1 + axis(random) % 2) % 3;
      other[to] = other[to] + static_cast<double>(factor(random)) * other[from];
    }
    EXPECT_LT(difference(m, mesh_metric(other)), 1e-9) << trial;
    n_skewed += difference(m, transpose(other) * other) > 0.5 ? 1 : 0;
  }
  EXPECT_GT(n_skewed, 100) << "the changes of cell must be large for the test to mean anything";
}

// Meshes such as 128×1×1 have steps of very different lengths.
TEST(MeshMetric, HoldsForVeryUnequalSteps) {
  const Mat3 steps{Vec3{-1.0 / 128, 1.0 / 128, 1.0 / 128}, Vec3{1, -1, 1}, Vec3{1, 1, -1}};
  const Mat3 reduced = reduced_lattice(steps);
  EXPECT_NEAR(std::fabs(determinant(reduced) / determinant(steps)), 1.0, 1e-9);
  EXPECT_NEAR(length(reduced[0]), std::sqrt(3.0) / 128, 1e-12);
  // (1,−1,1) and (1,1,−1) plus multiples of the short step are at least √(8/3) long.
  EXPECT_NEAR(length(reduced[1]), std::sqrt(8.0 / 3.0), 1e-3);
  const Mat3 other{steps[0], steps[1] - 40.0 * steps[0], steps[2] + steps[1]};
  EXPECT_LT(difference(mesh_metric(steps), mesh_metric(other)), 1e-9);
}

// Face-centred cubic lattices, reciprocal vectors (−1,1,1)·2π/a and so on: Σ b bᵀ = 3 (2π/a)² in
// the usual cell and in every other one. With a3 + a1 in place of a3 the plain sum is larger.
TEST(MeshMetric, KeepsTheUsualCubicCells) {
  const Mat3 usual{Vec3{-1, 1, 1}, Vec3{1, -1, 1}, Vec3{1, 1, -1}};
  const Mat3 skewed{usual[0] - usual[2], usual[1], usual[2]};
  for (const Mat3& cell : {usual, skewed}) {
    const Mat3 m = mesh_metric(cell);
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) EXPECT_NEAR(m[i][j], i == j ? 3.0 : 0.0, 1e-12);
  }
  EXPECT_GT((transpose(skewed) * skewed)[0][0], 4.0);
}

// The two customary cells of a hexagonal lattice, with 60° and 120°. Their sums differ by
// off-diagonal elements unless the mean runs over all reduced bases.
TEST(MeshMetric, OfHexagonalCellsHasTheirSymmetry) {
  const double h = std::sqrt(0.75);
  const Mat3 acute{Vec3{1, 0, 0}, Vec3{0.5, h, 0}, Vec3{0, 0, 0.6}};
  const Mat3 obtuse{Vec3{1, 0, 0}, Vec3{-0.5, h, 0}, Vec3{0, 0, 0.6}};
  EXPECT_LT(difference(mesh_metric(acute), mesh_metric(obtuse)), 1e-12);
  const Mat3 m = mesh_metric(acute);
  EXPECT_NEAR(m[0][0], 1.0, 1e-12);
  EXPECT_NEAR(m[1][1], 1.0, 1e-12);
  EXPECT_NEAR(m[0][1], 0.0, 1e-12);
  EXPECT_NEAR(m[2][2], 0.36, 1e-12);
}

// Widths of FourPhonon and ShengBTE keep b_i/N_i. A skewed cell is said in a warning, once.
TEST(MeshMetric, SkewedCellsOfThePublishedWidthsAreSaid) {
  for (const char* broadening : {"symmetric", "adaptive-max", "adaptive-rms"}) {
    Deck deck =
        read_deck(model("silicon-sw"),
                  test::settings_of({"ngrid=4,4,4", std::string("broadening=") + broadening}));
    const auto warnings = [&] {
      SilentProgress silent;
      const ConductivityRun run = start_run(deck, deck.control.harmonic_options(), silent);
      return std::count_if(run.warnings.begin(), run.warnings.end(), [](const std::string& w) {
        return w.find("'lattvec' is not reduced") != std::string::npos;
      });
    };
    EXPECT_EQ(warnings(), 0) << broadening;
    test::describe_otherwise({.cell = {Index3{1, 0, 0}, Index3{0, 1, 0}, Index3{1, 0, 1}}}, deck);
    EXPECT_EQ(warnings(), std::string(broadening) == "symmetric" ? 0 : 1) << broadening;
  }
}

/// The vectors of all obtuse superbases of a lattice with one sign, rounded, as a set.
std::set<std::set<std::array<long, 3>>> superbases(const Mat3& lattice) {
  std::set<std::set<std::array<long, 3>>> result;
  for (const Superbase& set : obtuse_superbases(lattice)) {
    std::set<std::array<long, 3>> vectors, negative;
    for (const Index3& c : set) {
      const Vec3 v = transpose(lattice) * Vec3{double(c[0]), double(c[1]), double(c[2])};
      std::array<long, 3> rounded{};
      for (int d = 0; d < 3; ++d) rounded[d] = std::lround(1e6 * v[d]);
      vectors.insert(rounded);
      negative.insert({-rounded[0], -rounded[1], -rounded[2]});
    }
    result.insert(std::min(vectors, negative));
  }
  return result;
}

// The divisions of a mesh into tetrahedra are those of its points, in whatever basis. A lattice of
// no symmetry has one. The numbers of the others are those of the ways to cut cubes, hexagonal
// prisms and octahedra.
TEST(Superbases, AreAPropertyOfTheLattice) {
  const double h = std::sqrt(0.75);
  struct Lattice {
    Mat3 basis;
    std::size_t expected;
  };
  std::vector<Lattice> lattices{
      {{Vec3{1, 0, 0}, Vec3{0, 1, 0}, Vec3{0, 0, 1}}, 4},
      {{Vec3{1, 0, 0}, Vec3{0, 1.2, 0}, Vec3{0, 0, 2}}, 4},
      {{Vec3{1, 0, 0}, Vec3{0.5, h, 0}, Vec3{0, 0, 1.3}}, 6},
      {{Vec3{-1, 1, 1}, Vec3{1, -1, 1}, Vec3{1, 1, -1}}, 1},
      {{Vec3{0, 1, 1}, Vec3{1, 0, 1}, Vec3{1, 1, 0}}, 3},
      {{Vec3{-1.0 / 128, 1.0 / 128, 1.0 / 128}, Vec3{1, -1, 1}, Vec3{1, 1, -1}}, 1}};
  std::mt19937 random(12);
  std::uniform_real_distribution<double> element(-1.0, 1.0);
  std::uniform_int_distribution<int> axis(0, 2), factor(-2, 2);
  while (lattices.size() < 60) {
    Mat3 basis;
    for (Vec3& row : basis)
      for (double& x : row) x = element(random);
    if (std::fabs(determinant(basis)) > 0.05) lattices.push_back({basis, 1});
  }
  for (std::size_t i = 0; i < lattices.size(); ++i) {
    const auto found = superbases(lattices[i].basis);
    EXPECT_EQ(found.size(), lattices[i].expected) << i;
    Mat3 other = lattices[i].basis;
    for (int step = 0; step < 6; ++step) {
      const int to = axis(random);
      const int from = (to + 1 + axis(random) % 2) % 3;
      other[to] = other[to] + static_cast<double>(factor(random)) * other[from];
    }
    EXPECT_EQ(superbases(other), found) << i;
  }
}

struct Case {
  const char* what;
  OtherDescription other;
};

/// Expects κ, counts of processes and the densities of one description in another.
void expect_same_physics(const char* name, const std::vector<std::string>& settings,
                         const std::vector<Case>& cases, double tolerance) {
  const Deck deck = read_deck(model(name), test::settings_of(settings));
  const auto reference = test::solve_model(deck);
  const TemperatureResult& a = reference->run.by_temperature[0];
  EXPECT_GT(a.kappa_rta_w_per_mk[0][0], 0.1);
  EXPECT_GT(a.kappa_w_per_mk[0][0], 0.1);
  for (const Case& c : cases) {
    Deck changed = deck;
    test::describe_otherwise(c.other, changed);
    const auto solved = test::solve_model(changed);
    const TemperatureResult& b = solved->run.by_temperature[0];
    const Mat3& r = c.other.rotation;
    const auto back = [&](const Mat3& t) { return transpose(r) * t * r; };
    const double rta = difference(a.kappa_rta_w_per_mk, back(b.kappa_rta_w_per_mk));
    const double bte = difference(a.kappa_w_per_mk, back(b.kappa_w_per_mk));
    // A tetrahedron whose corner is on the shell but for rounding has a weight of rounding, or
    // none.
    if (deck.control.broadening != Broadening::kTetrahedra) {
      EXPECT_EQ(solved->run.three_phonon.n_absorption, reference->run.three_phonon.n_absorption)
          << c.what;
      EXPECT_EQ(solved->run.three_phonon.n_emission, reference->run.three_phonon.n_emission)
          << c.what;
    }
    EXPECT_LT(rta, tolerance) << c.what;
    EXPECT_LT(bte, tolerance) << c.what;
    std::printf("    %s, %s: κ differs by %.1e (RTA), %.1e (BTE)\n", name, c.what, rta, bte);
  }
}

constexpr IntMat3 kPlusFirst{Index3{1, 0, 0}, Index3{0, 1, 0}, Index3{1, 0, 1}};
constexpr IntMat3 kTwoChanges{Index3{1, 1, 0}, Index3{0, 1, 0}, Index3{0, -1, 1}};
constexpr IntMat3 kFirstPlusSecond{Index3{1, 1, 0}, Index3{0, 1, 0}, Index3{0, 0, 1}};
constexpr IntMat3 kInPlane{Index3{1, 0, 0}, Index3{2, 1, 0}, Index3{0, 0, 1}};
constexpr IntMat3 kCyclic{Index3{0, 1, 0}, Index3{0, 0, 1}, Index3{1, 0, 0}};

// Silicon: mesh and supercell have equal divisions, so every primitive cell gives the same points.
TEST(Description, SiliconConductsAlikeInEveryCell) {
  expect_same_physics("silicon-sw", {"ngrid=6,6,6", "eps=1e-12"},
                      {{"a3 + a1", {.cell = kPlusFirst}},
                       {"a1 + a2, a3 - a2", {.cell = kTwoChanges}},
                       {"cyclic axes", {.cell = kCyclic}},
                       {"rotated", {.rotation = generic_rotation()}},
                       {"atoms reversed", {.reverse_atoms = true}},
                       {"all", {kPlusFirst, generic_rotation(), true, {0, 0, 0}, {0, 0, 0}}}},
                      1e-9);
}

// A fixed width and tetrahedra conserve energy alike in every description, too.
TEST(Description, WidthsOfPhono3pyConductAlikeInEveryCell) {
  const std::vector<Case> cases{{"a3 + a1", {.cell = kPlusFirst}},
                                {"all", {kTwoChanges, generic_rotation(), true, {}, {}}}};
  expect_same_physics(
      "silicon-sw", {"ngrid=6,6,6", "eps=1e-12", "broadening=fixed", "sigma_thz=0.2"}, cases, 1e-9);
  expect_same_physics("silicon-sw", {"ngrid=6,6,6", "eps=1e-12", "broadening=tetrahedra"}, cases,
                      1e-9);
  expect_same_physics("wurtzite-sw", {"ngrid=4,4,3", "eps=1e-12", "broadening=tetrahedra"},
                      {{"a2 + 2 a1", {.cell = kInPlane}},
                       {"rotated", {.rotation = generic_rotation()}},
                       {"atoms reversed", {.reverse_atoms = true}}},
                      1e-9);
}

// A hexagonal crystal of four atoms with an unequal mesh: the axes and the cell in the plane may
// change. Its files are rounded at 1e-9 eV/Åⁿ, so that κ of two descriptions differs by 5e-10.
TEST(Description, WurtziteConductsAlikeInEveryCell) {
  constexpr Index3 kTurned{4, 3, 4};
  const Index3 cells = read_deck(model("wurtzite-sw"), {}).second_order.supercell;
  expect_same_physics(
      "wurtzite-sw", {"ngrid=4,4,3", "eps=1e-12"},
      {{"a2 + 2 a1", {.cell = kInPlane}},
       {"cyclic axes",
        {.cell = kCyclic, .mesh = kTurned, .supercell = {cells[1], cells[2], cells[0]}}},
       {"rotated", {.rotation = generic_rotation()}},
       {"atoms reversed", {.reverse_atoms = true}}},
      1e-9);
}

// A polar crystal, whose non-analytic term has equally short images q + G on the zone's faces.
TEST(Description, RocksaltConductsAlikeInEveryCell) {
  expect_same_physics("rocksalt", {"ngrid=6,6,6", "eps=1e-12"},
                      {{"a3 + a1", {.cell = kPlusFirst}},
                       {"a1 + a2", {.cell = kFirstPlusSecond}},
                       {"rotated", {.rotation = generic_rotation()}},
                       {"atoms reversed", {.reverse_atoms = true}}},
                      1e-9);
}

}  // namespace
}  // namespace quasi::thermal
