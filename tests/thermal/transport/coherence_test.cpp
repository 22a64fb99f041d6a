// Tests the coherences of the Wigner conductivity: closed forms, and invariance under the
// description of the crystal.

#include "workers/thermal/solver/transport/coherence.hpp"
#include "workers/thermal/input/deck/crystal_input.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "tests/support/reference_data.hpp"
#include "tests/thermal/support/solved_deck.hpp"
#include "workers/thermal/physics/occupation.hpp"
#include "workers/thermal/physics/wigner.hpp"
#include "workers/units/constants.hpp"

namespace quasi::thermal {
namespace {

// Two equal modes weigh as much as one population. Narrow lines contribute in proportion to their
// width, wide lines in inverse proportion (docs/theory/thermal.md 13).
TEST(WignerPair, HasItsLimits) {
  const double population = 30.0 * 30.0 * 1.7 / 0.4;  // ω² n(n+1)/w
  EXPECT_NEAR(wigner_pair_weight(30.0, 30.0, 1.7, 1.7, 0.4, 0.4), population, 1e-12 * population);
  const double narrow = wigner_pair_weight(30.0, 50.0, 1.7, 0.6, 1e-4, 3e-4);
  EXPECT_NEAR(narrow, 0.5 * 80.0 * (30.0 * 1.7 + 50.0 * 0.6) * 4e-4 / (4.0 * 400.0), 1e-9 * narrow);
  EXPECT_NEAR(wigner_pair_weight(30.0, 50.0, 1.7, 0.6, 2e-4, 6e-4) / narrow, 2.0, 1e-6);
  const double wide = wigner_pair_weight(30.0, 50.0, 1.7, 0.6, 1e6, 1e6);
  EXPECT_NEAR(wide, 0.5 * 80.0 * (30.0 * 1.7 + 50.0 * 0.6) / 2e6, 1e-8 * wide);
  EXPECT_EQ(wigner_pair_weight(30.0, 50.0, 1.7, 0.6, 0.0, 0.0), 0.0);
}

/// A crystal defined by springs, with the parts of a run.
struct SpringCrystal {
  Control control;
  Crystal crystal;
  SecondOrder second;
  Symmetry symmetry;
  Modes modes;
  Transport transport() const { return {crystal, symmetry, modes, control.transport_options()}; }
};

using Block = std::array<double, 9>;
/// C(κ, cell; κ', 0) by (κ, κ', cell), (rad/ps)² amu.
using Springs = std::map<std::tuple<int, int, Index3>, Block>;

/// Adds a bond of atom i in cell 0 and atom j in `cell` with the energy ½ (u_i − u_j)ᵀ B (u_i −
/// u_j).
void add_bond(Springs& springs, int i, int j, const Index3& cell, const Block& b) {
  const Index3 back{-cell[0], -cell[1], -cell[2]};
  const auto add = [&](int atom, int other, const Index3& at, double sign) {
    Block& block = springs[{atom, other, at}];
    for (int e = 0; e < 9; ++e) block[e] += sign * b[e];
  };
  add(j, i, cell, -1.0);
  add(i, j, back, -1.0);
  add(i, i, {0, 0, 0}, 1.0);
  add(j, j, {0, 0, 0}, 1.0);
}

std::unique_ptr<SpringCrystal> spring_crystal(const std::string& control, const Springs& springs) {
  auto c = std::make_unique<SpringCrystal>();
  c->control = parse_control(control, "test", {});
  c->crystal = make_crystal(c->control);
  c->second.n_atoms = c->crystal.n_atoms();
  c->second.image_cells = 27;  // every pair is listed for 27 cells, most of them without a spring
  for (int atom = 0; atom < c->crystal.n_atoms(); ++atom)
    for (int other = 0; other < c->crystal.n_atoms(); ++other)
      for (int i = -1; i <= 1; ++i)
        for (int j = -1; j <= 1; ++j)
          for (int k = -1; k <= 1; ++k) {
            SecondOrder::Image image{
                .atom = atom, .other = other, .cell = {i, j, k}, .weight = 1.0, .value = {}};
            const auto found = springs.find({atom, other, {i, j, k}});
            if (found != springs.end()) image.value = found->second;
            c->second.images.push_back(image);
          }
  c->symmetry = find_symmetry(c->crystal, c->control.symmetry_options());
  SilentProgress silent;
  c->modes =
      solve_harmonic(c->crystal, c->second, c->symmetry, c->control.harmonic_options(), silent);
  return c;
}

// A diatomic chain with alternating springs k₁, k₂ at distances d, a−d has two levels for each
// direction of motion and closed forms for all quantities: ω²_± = (k₁+k₂ ± |f|)/m, f = k₁e^{iqd} +
// k₂e^{−iq(a−d)}, and |v_±|² = (Im f*f'/m|f|)²/(ω₊+ω₋)². The test evaluates the formula in SI
// units.
TEST(Coherence, TwoLevelChainInClosedForm) {
  constexpr double kMass_amu = 20.0, kA_nm = 0.5, kD_nm = 0.15, kTemperature_k = 250.0;
  constexpr int kN = 12;
  const double k1[3] = {9000.0, 11000.0, 7000.0};  // (rad/ps)² amu
  const double k2[3] = {5000.0, 4000.0, 6500.0};
  Springs springs;
  add_bond(springs, 0, 1, {0, 0, 0}, {k1[0], 0, 0, 0, k1[1], 0, 0, 0, k1[2]});
  add_bond(springs, 1, 0, {1, 0, 0}, {k2[0], 0, 0, 0, k2[1], 0, 0, 0, k2[2]});
  const auto c = spring_crystal(
      "&allocations\n nelements=1 natoms=2 ngrid=12 1 1\n/\n&crystal\n lfactor=1 lattvec(:,1)=0.5 "
      "0 0 lattvec(:,2)=0 0.41 0\n"
      " lattvec(:,3)=0 0 0.62 elements=\"Ne\" types=1 1 positions(:,1)=0 0 0 positions(:,2)=0.3 0 "
      "0 scell=1 1 1 masses=20.0\n"
      " gfactors=0\n/\n&parameters\n T=250\n/\n&flags\n autoisotopes=.false. isotopes=.false.\n/\n",
      springs);
  std::vector<std::vector<double>> rates(
      1, std::vector<double>(static_cast<std::size_t>(c->transport().n_rows())));
  const auto rate_of = [](double omega) { return 0.3 + 0.05 * omega; };
  for (std::int64_t row = 0; row < c->transport().n_rows(); ++row)
    rates[0][row] = rate_of(c->modes.omega_rad_ps[c->transport().mode_of_row(row)]);
  const auto found = coherence_conductivity(c->transport(), c->second, {kTemperature_k}, rates);

  constexpr double kHbar = units::kHbar_j_s, kBoltzmann = units::kBoltzmann_j_k;
  double sum = 0.0;
  for (int i = 0; i < kN; ++i)
    for (int p = 0; p < 3; ++p) {
      if (i == 0) continue;  // added below: at Γ the acoustic level is a translation
      const double q = 2.0 * units::kPi * i / (kN * kA_nm);
      const std::complex<double> one = std::polar(k1[p], q * kD_nm),
                                 two = std::polar(k2[p], -q * (kA_nm - kD_nm));
      const std::complex<double> f = one + two;
      const std::complex<double> slope =
          std::complex<double>(0, kD_nm) * one - std::complex<double>(0, kA_nm - kD_nm) * two;
      const double high = std::sqrt((k1[p] + k2[p] + std::abs(f)) / kMass_amu);
      const double low = std::sqrt((k1[p] + k2[p] - std::abs(f)) / kMass_amu);
      const double v =
          std::imag(std::conj(f) * slope) / (kMass_amu * std::abs(f)) / (high + low) * 1e3;  // m/s
      const auto weight = [&](double omega) {
        const double n = 1.0 / std::expm1(kHbar * omega * 1e12 / (kBoltzmann * kTemperature_k));
        return n * (n + 1.0);
      };
      const double wh = rate_of(high), wl = rate_of(low);
      const double pair = 0.5 * (high + low) * (high * weight(high) + low * weight(low)) *
                          (wh + wl) / (4.0 * (high - low) * (high - low) + (wh + wl) * (wh + wl)) *
                          1e12;  // rad²/s
      sum += 2.0 * pair * v * v;
    }
  const double volume = 0.5 * 0.41 * 0.62 * 1e-27;
  const double expected =
      kHbar * kHbar / (kBoltzmann * kTemperature_k * kTemperature_k * volume * kN) * sum;
  EXPECT_GT(expected, 0.0);
  EXPECT_NEAR(found[0].kappa_w_per_mk[0][0] / expected, 1.0, 1e-9);
  EXPECT_NEAR(found[0].kappa_w_per_mk[1][1] / expected, 0.0, 1e-12);
}

// One crystal is described by its primitive cell and by a cell twice as long. Populations and
// coherences of the Wigner conductivity must be equal; with phases of lattice vectors alone they
// would not be. The crystal is triclinic with random springs, on meshes that hold equal wave
// vectors.
TEST(Coherence, DoesNotKnowWhichCellDescribesTheCrystal) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  Springs primitive;
  const auto bond = [&](int i, int j, const Index3& cell, double strength) {
    Block b{};
    for (int n = 0; n < 3; ++n) {  // a positive matrix from three random directions
      const Vec3 x{uniform(random), uniform(random), uniform(random)};
      for (int e = 0; e < 9; ++e) b[e] += strength * x[e / 3] * x[e % 3];
    }
    add_bond(primitive, i, j, cell, b);
  };
  for (const Index3& cell : {Index3{0, 0, 0}, Index3{-1, 0, 0}, Index3{0, -1, 0}, Index3{0, 0, -1}})
    bond(0, 1, cell, 6000.0);
  for (int atom = 0; atom < 2; ++atom)
    for (const Index3& cell : {Index3{1, 0, 0}, Index3{0, 1, 0}, Index3{0, 0, 1}})
      bond(atom, atom, cell, 2500.0);
  Springs doubled;
  for (const auto& [key, block] : primitive) {
    const auto& [atom, other, cell] = key;
    for (int half = 0; half < 2; ++half) {
      const int x = cell[0] + half;
      const int at = x >= 0 ? x / 2 : (x - 1) / 2;
      doubled[{atom + 2 * (x - 2 * at), other + 2 * half, {at, cell[1], cell[2]}}] = block;
    }
  }
  const std::string tail =
      " scell=1 1 1 masses=20.0 33.0 gfactors=0 0\n/\n&parameters\n T=200\n/\n&flags\n "
      "autoisotopes=.false. isotopes=.false.\n/\n";
  const auto one = spring_crystal(
      "&allocations\n nelements=2 natoms=2 ngrid=6 3 3\n/\n&crystal\n lfactor=1 lattvec(:,1)=0.4 "
      "0.02 0.01 lattvec(:,2)=0.05 0.43 -0.03\n"
      " lattvec(:,3)=0.02 0.07 0.47 elements=\"Ne\" \"Ar\" types=1 2 positions(:,1)=0.02 0 0 "
      "positions(:,2)=0.41 0.37 0.55" +
          tail,
      primitive);
  const auto two = spring_crystal(
      "&allocations\n nelements=2 natoms=4 ngrid=3 3 3\n/\n&crystal\n lfactor=1 lattvec(:,1)=0.8 "
      "0.04 0.02 lattvec(:,2)=0.05 0.43 -0.03\n"
      " lattvec(:,3)=0.02 0.07 0.47 elements=\"Ne\" \"Ar\" types=1 2 1 2 positions(:,1)=0.01 0 0 "
      "positions(:,2)=0.205 0.37 0.55\n"
      " positions(:,3)=0.51 0 0 positions(:,4)=0.705 0.37 0.55" +
          tail,
      doubled);
  const auto solve = [](const SpringCrystal& c) {
    const Transport t = c.transport();
    std::vector<std::vector<double>> rates(
        1, std::vector<double>(static_cast<std::size_t>(t.n_rows())));
    for (std::int64_t row = 0; row < t.n_rows(); ++row)
      rates[0][row] = 0.5 + 0.05 * c.modes.omega_rad_ps[t.mode_of_row(row)];
    const Mat3 populations = total(mode_conductivity(t, 200.0, relaxation_time_field(t, rates[0])));
    return std::pair{populations,
                     coherence_conductivity(t, c.second, {200.0}, rates)[0].kappa_w_per_mk};
  };
  const auto [p1, c1] = solve(*one);
  const auto [p2, c2] = solve(*two);
  EXPECT_GT(c1[0][0], 1e-3 * p1[0][0]);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      EXPECT_NEAR(p1[i][j], p2[i][j], 1e-8 * p1[0][0]);
      EXPECT_NEAR(c1[i][j], c2[i][j], 1e-8 * c1[0][0]);
      EXPECT_NEAR(c1[i][j], c1[j][i], 1e-10 * c1[0][0]);
    }
}

// Any unitary mixing inside degenerate subspaces leaves the coherences unchanged. They have the
// cubic symmetry, and folding the mesh does not change them.
TEST(Coherence, IsIndependentOfDegenerateEigenvectorsAndOfFolding) {
  const auto path = quasi::test::source_dir() / "examples/thermal/silicon";
  const auto s = test::solve_deck(path, {"ngrid=4,4,4", "convergence=F"});
  const Transport t{s->deck.crystal, s->deck.symmetry, s->run.modes,
                    s->deck.control.transport_options()};
  const std::vector<std::vector<double>> rates{s->run.by_temperature[0].rate_per_ps};
  const Mat3 before =
      coherence_conductivity(t, s->deck.second_order, {300.0}, rates)[0].kappa_w_per_mk;
  EXPECT_GT(before[0][0], 0.0);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      EXPECT_NEAR(before[i][j], i == j ? before[0][0] : 0.0, 1e-9 * before[0][0]);
  std::mt19937 random(3);
  std::uniform_real_distribution<double> angle(0.0, 2.0 * units::kPi);
  const int nb = s->run.modes.n_branches;
  int n_mixed = 0;
  for (std::int64_t q = 0; q < s->run.modes.n_q; ++q)
    for (int a = 0; a < nb; ++a)
      for (int b = 0; b < a; ++b) {
        if (s->run.modes.subspace[q * nb + a] != s->run.modes.subspace[q * nb + b]) continue;
        const double theta = angle(random);
        const std::complex<double> phase = std::polar(1.0, angle(random));
        for (int i = 0; i < nb; ++i) {
          auto& x = s->run.modes.eigenvector[(q * nb + a) * nb + i];
          auto& y = s->run.modes.eigenvector[(q * nb + b) * nb + i];
          const auto mixed = std::cos(theta) * x + std::sin(theta) * phase * y;
          y = -std::sin(theta) * std::conj(phase) * x + std::cos(theta) * y;
          x = mixed;
        }
        ++n_mixed;
      }
  EXPECT_GT(n_mixed, 50);
  const Mat3 after =
      coherence_conductivity(t, s->deck.second_order, {300.0}, rates)[0].kappa_w_per_mk;
  EXPECT_NEAR(after[0][0] / before[0][0], 1.0, 1e-9);
  const auto whole = test::solve_deck(path, {"ngrid=4,4,4", "convergence=F", "symmetry=F"});
  const Transport u{whole->deck.crystal, whole->deck.symmetry, whole->run.modes,
                    whole->deck.control.transport_options()};
  const Mat3 unfolded = coherence_conductivity(u, whole->deck.second_order, {300.0},
                                               {whole->run.by_temperature[0].rate_per_ps})[0]
                            .kappa_w_per_mk;
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(unfolded[i][i] / before[0][0], 1.0, 1e-8);
}

}  // namespace
}  // namespace quasi::thermal
