// ε⁻¹ and Σ of two-component states (docs/theory/gw.md 15): equality with the spin-unpolarised
// run, rotations of the spin axis, mixing within multiplets, symmetry, and the limit q → 0.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/gw/support/small_silicon.hpp"
#include "workers/gw/physics/spinor.hpp"
#include "workers/gw/solver/bands/state_matching.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/mean_field/density.hpp"
#include "workers/gw/solver/screening/long_wave_tensor.hpp"
#include "workers/gw/solver/screening/polarizability/long_wave_dipoles.hpp"

namespace quasi::gw {
namespace {

using test::SmallSilicon;

EmpiricalCrystal spinor_crystal(const std::string& name, double lambda_ry_bohr2) {
  EmpiricalCrystal crystal = SmallSilicon::small_crystal();
  crystal.name = name;
  crystal.wavefunction_cutoff_ry = 5.0;
  crystal.bands = 28;
  crystal.spin_orbit_ry_bohr2 = {lambda_ry_bohr2, lambda_ry_bohr2};
  return crystal;
}

double total(const SelfEnergyAtK& sum, std::size_t l) {
  return sum.x_ry[l] + (sum.sx_ry[0][l] + sum.ch_ry[0][l]).real();
}

/// Returns the largest difference of two ε⁻¹, over all q and elements.
double difference(const std::vector<DielectricMatrix>& a, const std::vector<DielectricMatrix>& b) {
  double largest = 0.0;
  for (std::size_t q = 0; q < a.size(); ++q)
    for (std::size_t i = 0; i < a[q].inverse[0].size(); ++i)
      largest = std::max(largest, std::abs(a[q].inverse[0][i] - b[q].inverse[0][i]));
  return largest;
}

/// The states at every point of a zone.
Wavefunctions at_every_point(const Wavefunctions& from, const BrillouinZone& zone) {
  Wavefunctions to = from;
  to.header.crystal.symmetries = {
      {.rotation = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}, .translation = {}}};
  to.k.clear();
  to.waves.clear();
  to.energy_ry.clear();
  to.occupation.clear();
  to.first_occupied.assign(zone.points().size(), 1);
  to.last_occupied.assign(zone.points().size(), from.last_occupied[0]);
  to.weight.assign(zone.points().size(), 1.0 / static_cast<double>(zone.size()));
  for (const ZonePoint& point : zone.points()) {
    const Rotation rotation = zone.rotation_to(point.k);
    const RotatedWaves waves = rotated_waves(from, zone.operations(), rotation, 0, 0, from.n_bands);
    const Cplx* c = waves.coefficients.data;
    to.k.push_back(point.k);
    to.waves.push_back({waves.g, {std::vector<Cplx>(c, c + waves.coefficients.size())}});
    for (int n = 0; n < from.n_bands; ++n) {
      to.energy_ry.push_back(from.energy(0, rotation.irreducible, n));
      to.occupation.push_back(from.occupied(0, rotation.irreducible, n));
    }
  }
  return to;
}

/// Returns a mean field with all points of its grids listed and the identity as its only operation.
MeanField without_symmetry(const MeanField& field) {
  std::optional<Wavefunctions> shifted;
  if (field.shifted) shifted = at_every_point(*field.shifted, *field.shifted_zone);
  MeanField full =
      make_mean_field(at_every_point(field.waves, field.zone), std::move(shifted), field.density);
  full.q0 = field.q0;
  full.by_velocity = field.by_velocity;
  full.spin_orbit = field.spin_orbit;
  return full;
}

SigmaOptions at_every_k(SigmaOptions o, const MeanField& field) {
  o.kpoints.clear();
  for (int ik = 0; ik < field.waves.n_k(); ++ik) o.kpoints.push_back(ik);
  return o;
}

/// Expects Σ of equal multiplets at equal k of two fields, as averages over each multiplet.
void expect_equal_means(const MeanField& a, const std::vector<SelfEnergyAtK>& of_a,
                        const MeanField& b, const std::vector<SelfEnergyAtK>& of_b) {
  int compared = 0;
  for (const SelfEnergyAtK& one : of_a)
    for (const SelfEnergyAtK& two : of_b) {
      const Vec3 d = a.waves.k[static_cast<std::size_t>(one.k_index)] -
                     b.waves.k[static_cast<std::size_t>(two.k_index)];
      if (dot(d, d) > 1e-12) continue;
      for (const auto& [begin, end] :
           multiplets(a.waves, 0, one.k_index, 0, static_cast<int>(one.x_ry.size()))) {
        double change = 0.0;
        for (int band = begin; band < end; ++band)
          change += total(one, static_cast<std::size_t>(band)) -
                    total(two, static_cast<std::size_t>(band));
        EXPECT_NEAR(change / (end - begin), 0.0, 1e-10) << one.k_index << ' ' << begin;
        ++compared;
      }
    }
  EXPECT_GE(compared, 9);
}

/// Runs a whole job without files at λ = 0, with spinors or without.
Calculation job(const std::string& crystal, const std::string& method, bool spinors) {
  const std::string n = spinors ? "28" : "14", top = spinors ? "16" : "8";
  const std::string text = "self_test = true\n[meanfield]\nsource = \"epm\"\ncrystal = \"" +
                           crystal + "\"\ncutoff_ry = 5.0\nk_grid = [2, 2, 1]\nbands = " + n +
                           "\n" + (spinors ? "spin_orbit_ry_bohr2 = 0.0\n" : "") +
                           "[epsilon]\ncutoff_ry = 2.5\n[sigma]\nband_max = " + top +
                           "\nmethod = \"" + method + "\"\n";
  const auto kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  return run_calculation(parse_deck(text, {}, "test", "."), *kernels, std::int64_t{1} << 30,
                         silent);
}

// A spinor run at λ = 0 is the spin-unpolarised run with every level twice. ε⁻¹, X and Σ
// agree to 1e-10 relative with every method. The jobs go through the deck, k·p and the self-test.
TEST(Spinors, WithoutCouplingEqualTheUnpolarisedRun) {
  struct Case {
    const char *crystal, *method;
  };
  for (const auto& [crystal, method] : {Case{"silicon", "hl-gpp"},
                                        {"silicon", "gn-gpp"},
                                        {"silicon", "cohsex"},
                                        {"silicon", "contour"},
                                        {"gaas", "hl-gpp"}}) {
    SCOPED_TRACE(std::string(crystal) + ", " + method);
    const Calculation one = job(crystal, method, false), two = job(crystal, method, true);
    EXPECT_EQ(two.field.n_occupied, 8);
    EXPECT_NEAR(two.field.n_electrons(), 8.0, 1e-12);
    ASSERT_EQ(one.epsilon.size(), two.epsilon.size());
    EXPECT_LT(difference(one.epsilon, two.epsilon), 1e-10);
    ASSERT_EQ(two.quasiparticles.size(), 2 * one.quasiparticles.size());
    const std::size_t n = static_cast<std::size_t>(one.plan.sigma.band_max);
    for (std::size_t i = 0; i < two.quasiparticles.size(); ++i) {
      const Quasiparticle &found = two.quasiparticles[i],
                          &expected = one.quasiparticles[i / (2 * n) * n + i % (2 * n) / 2];
      EXPECT_EQ(found.band, static_cast<int>(i % (2 * n)) + 1);
      EXPECT_NEAR(found.mean_field_ev, expected.mean_field_ev, 1e-10);
      EXPECT_NEAR(found.x_ev, expected.x_ev, 1e-10 * std::abs(expected.x_ev));
      EXPECT_NEAR(found.sigma_ev, expected.sigma_ev, 1e-10 * std::abs(expected.sigma_ev));
    }
  }
}

// Kramers doublets of silicon stay degenerate in Σ at every k without an average over multiplets,
// to 1e-10 eV, which is 7e-12 Ry. The coupling splits the top of the valence bands at Γ, and the
// density of the states holds eight electrons.
TEST(Spinors, KramersDoubletsHaveOneSelfEnergy) {
  SmallSilicon s(spinor_crystal("silicon", 2.2e-2));
  EXPECT_EQ(s.field.n_occupied, 8);
  SigmaOptions o = s.options(14);
  o.reduce_q = false;
  for (const SelfEnergyAtK& sum : s.sigma(o))
    for (std::size_t l = 0; l < sum.x_ry.size(); l += 2)
      EXPECT_NEAR(total(sum, l), total(sum, l + 1), 7e-12) << sum.k_index << ' ' << l;
  EXPECT_GT(s.field.waves.energy(0, 0, 7) - s.field.waves.energy(0, 0, 2), 1e-2);
}

/// Applies one matrix of SU(2) to all states of a list.
void turn_spin_axis(const SpinMatrix& u, Wavefunctions& waves) {
  for (KPointWaves& at : waves.waves) {
    const std::size_t n_pw = at.g.size();
    std::vector<Cplx>& c = at.coefficients[0].in_memory();
    for (std::size_t band = 0; band < c.size() / (2 * n_pw); ++band)
      for (std::size_t i = 0; i < n_pw; ++i) {
        Cplx &up = c[2 * band * n_pw + i], &down = c[(2 * band + 1) * n_pw + i];
        const Cplx before = up;
        up = u[0][0] * before + u[0][1] * down;
        down = u[1][0] * before + u[1][1] * down;
      }
  }
}

// Two changes of the states leave ε⁻¹ and the Σ of every multiplet as they are, within 1e-10.
// One rotates the spin axis of all states, the other mixes the states of each multiplet by a
// unitary matrix. Rotations of the crystal would fix the spin axis, so that the test uses none.
TEST(Spinors, SpinAxisAndMixingOfMultipletsAreFree) {
  SmallSilicon s(spinor_crystal("gaas", 2.2e-2));
  const MeanField full = without_symmetry(s.field);
  const auto epsilon = s.screening(full);
  const SigmaOptions o = at_every_k(s.options(14), full);
  const auto expected = s.sigma(full, epsilon, o);
  MeanField turned = full, mixed = full;
  SpinMatrix u = pauli({0.48, 0.6, 0.64});  // cos(φ) − i sin(φ) n·σ
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t j = 0; j < 2; ++j)
      u[i][j] = u[i][j] * Cplx(0.0, -std::sin(0.7)) + (i == j ? std::cos(0.7) : 0.0);
  turn_spin_axis(u, turned.waves);
  turn_spin_axis(u, *turned.shifted);
  for (int ik = 0; ik < mixed.waves.n_k(); ++ik)
    test::rotate_multiplets(mixed, ik, o.bands, 31u + static_cast<std::uint32_t>(ik));
  for (const MeanField* changed : {&turned, &mixed}) {
    const auto found = s.screening(*changed);
    EXPECT_LT(difference(found, epsilon), 1e-10);
    expect_equal_means(full, expected, *changed, s.sigma(*changed, found, o));
  }
}

// The full zone from rotated spinors equals a run without symmetry: Σ of every multiplet agrees to
// 1e-10 Ry, and the density to 1e-12. The limit q → 0 by k·p holds in every direction, so that
// both runs may average it.
TEST(Spinors, SymmetryEqualsTheFullZone) {
  for (const char* name : {"silicon", "gaas"}) {
    EmpiricalCrystal crystal = spinor_crystal(name, 2.2e-2);
    crystal.by_velocity = true;
    SmallSilicon s(crystal);
    const MeanField full = without_symmetry(s.field);
    EXPECT_GT(full.waves.n_k(), 2 * s.field.waves.n_k());
    const SigmaOptions o = s.options(14);
    expect_equal_means(s.field, s.sigma(o), full,
                       s.sigma(full, s.screening(full), at_every_k(o, full)));
    const auto rho = summed_density(full.waves, full.zone, {8}, full.density.header.g, *s.kernels);
    for (std::size_t i = 0; i < rho[0].size(); ++i)
      EXPECT_LT(std::abs(rho[0][i] - s.field.density.values[0][i]), 1e-12);
  }
}

/// Returns Σ |⟨v, k+q|c, k⟩|² over occupied v and the lowest empty doublet c.
double transition_strength(const StatesAt& states, const Vec3& k, const Vec3& q) {
  const DenseStates at_k = states(k, 0, 10), at_q = states(k + q, 0, 8);
  const std::vector<Cplx> overlap =
      overlaps(at_q, {0, 8}, {at_k.sphere.g, at_k.coefficients.data() + 8 * at_k.row(), 2});
  double sum = 0.0;
  for (const Cplx& value : overlap) sum += std::norm(value);
  return sum;
}

// Dipoles by k·p contain the derivative of the spin–orbit term: their squares, summed over the
// occupied states, are those of states at k ± q up to terms of order q², 2e-5 of the sum. Without
// the derivative they differ by more than 1e-3.
TEST(Spinors, DipolesContainTheCoupling) {
  EmpiricalCrystal crystal = spinor_crystal("gaas", 6e-2);
  crystal.by_velocity = true;
  SmallSilicon s(crystal);
  MeanField uncoupled = s.field;
  uncoupled.spin_orbit = nullptr;
  const StatesAt states = empirical_states(crystal, s.field.crystal(), *s.kernels);
  const Vec3 k = s.field.zone.points()[1].k, q0 = 0.25 * s.field.q0;
  const auto axes = along_cartesian_axes(s.field.crystal(),
                                         std::sqrt(metric_dot(s.field.crystal().bdot, q0, q0)));
  const auto sums = [&](const MeanField& field) {
    const auto m = LongWaveDipoles(field, q0, {8, 10}).calculate({1, 1}, 0, *s.kernels);
    std::array<double, 3> sum{};
    for (std::size_t i = 0; i < m.size(); ++i) sum[i / 16] += std::norm(m[i]);
    return sum;
  };
  const std::array<double, 3> found = sums(s.field), without = sums(uncoupled);
  double change = 0.0;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const double expected = 0.5 * (transition_strength(states, k, axes[axis]) +
                                   transition_strength(states, k, -1.0 * axes[axis]));
    EXPECT_NEAR(found[axis], expected, 2e-5 * expected) << axis;
    change = std::max(change, std::abs(without[axis] / expected - 1.0));
  }
  EXPECT_GT(change, 1e-3);
}

}  // namespace
}  // namespace quasi::gw
