// Self-consistency, spin, and what the full matrix keeps: laws on a small built-in crystal.

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/gw/support/small_silicon.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/solver/mean_field/density.hpp"
#include "workers/gw/solver/self_energy/outer_loop.hpp"

namespace quasi::gw {
namespace {

using test::SmallSilicon;

/// Problem of a loop on one device, without a checkpoint.
struct Alone {
  SilentProgress silent;
  DeviceTeam team;
  Checkpoint none;
  OuterLoopProblem problem;
  Alone(SmallSilicon& s, MeanField& field, std::vector<DielectricMatrix>& epsilon,
        const SigmaOptions& o)
      : team(*s.kernels), problem{field, epsilon, o, s.coulomb, team, none, "", silent} {}
};

struct Converged {
  std::vector<Quasiparticle> list;
  OuterLoopReport report;
};

Converged eigenvalue_loop(SmallSilicon& s, OuterLoop kind, double start_shift_ev,
                          const std::vector<std::vector<double>>& vxc) {
  MeanField field = s.field;
  std::vector<DielectricMatrix> epsilon = s.epsilon;
  SigmaOptions o = s.options();
  // The rule that drops SX for x < 0 makes Σ(E) discontinuous, so that deep states may never
  // converge. Without a cut SX is always dropped, and Σ(E) has no step.
  o.rules.screened_exchange_cut = 0.0;
  Alone alone(s, field, epsilon, o);
  Converged result;
  std::vector<SelfEnergyAtK> sigma;
  result.list = iterate_eigenvalues(
      alone.problem,
      {{.kind = kind, .max_iterations = 60, .tolerance_ev = 1e-8, .start_shift_ev = start_shift_ev},
       {Derivative::kAnalytic, 0.0}},
      vxc, [&](const MeanField& of) { return s.screening(of); }, &sigma, &result.report);
  // Bands above the window moved by what its last one moved by.
  EXPECT_LT(o.band_max, field.waves.n_bands);
  for (int ik = 0; ik < field.waves.n_k(); ++ik) {
    const auto correction = [&](int n) {
      return field.waves.energy(0, ik, n) - s.field.waves.energy(0, ik, n);
    };
    for (int n = o.band_max; n < field.waves.n_bands; ++n)
      EXPECT_NEAR(correction(n), correction(o.band_max - 1), 1e-12);
    EXPECT_NE(correction(o.band_max), 0.0);
  }
  return result;
}

// The fixed point of evGW₀ and of evGW does not depend on where the iteration starts, and
// reproduces itself: E = E_mf − V_xc + Σ(E).
TEST(OuterLoops, FixedPointDoesNotDependOnTheStart) {
  SmallSilicon s;
  const auto vxc = test::diagonal_of(s.toy_vxc(s.options()));
  for (const OuterLoop kind : {OuterLoop::kEvGw0, OuterLoop::kEvGw}) {
    const Converged a = eigenvalue_loop(s, kind, 0.0, vxc), b = eigenvalue_loop(s, kind, 0.7, vxc);
    EXPECT_TRUE(a.report.converged);
    EXPECT_GT(a.report.change_ev.size(), 3u);
    double moved = 0.0;
    for (std::size_t i = 0; i < a.list.size(); ++i) {
      EXPECT_NEAR(*a.list[i].qp1_ev, *b.list[i].qp1_ev, 1e-6) << i;
      EXPECT_NEAR(*a.list[i].qp0_ev, *a.list[i].qp1_ev, 1e-6) << i;
      moved = std::max(moved, std::abs(*a.list[i].qp1_ev - a.list[i].mean_field_ev));
    }
    EXPECT_GT(moved, 0.2);
  }
}

TEST(OuterLoops, NeedsEveryKPointAndVxc) {
  SmallSilicon s;
  SigmaOptions o = s.options();
  const auto vxc = s.toy_vxc(o);
  std::vector<SelfEnergyAtK> sigma;
  OuterLoopReport report;
  Alone complete(s, s.field, s.epsilon, o);
  EXPECT_THROW(iterate_eigenvalues(complete.problem, {{.kind = OuterLoop::kEvGw0}, {}}, {}, {},
                                   &sigma, &report),
               InvalidInput);
  SigmaOptions one = o;
  one.kpoints = {0};
  Alone partial(s, s.field, s.epsilon, one);
  EXPECT_THROW(iterate_states(partial.problem, {.kind = OuterLoop::kQsGw0}, {}, vxc, {}, &report),
               InvalidInput);
}

std::vector<double> state_loop(SmallSilicon& s, OuterLoop kind, double start_shift_ev,
                               const std::vector<std::vector<Cplx>>& vxc, double* mixing) {
  MeanField field = s.field;
  std::vector<DielectricMatrix> epsilon = s.epsilon;
  const SigmaOptions o = s.options();
  OuterLoopReport report;
  Alone alone(s, field, epsilon, o);
  iterate_states(
      alone.problem,
      {.kind = kind, .max_iterations = 60, .tolerance_ev = 1e-6, .start_shift_ev = start_shift_ev},
      {}, vxc, [&](const MeanField& of) { return s.screening(of); }, &report);
  EXPECT_TRUE(report.converged);
  // States stay orthonormal, and have changed: |⟨old|new⟩| of the lowest at the last k.
  const KPointWaves &before = s.field.waves.waves.back(), &after = field.waves.waves.back();
  const std::size_t n_pw = before.g.size();
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      Cplx overlap;
      for (std::size_t x = 0; x < n_pw; ++x)
        overlap +=
            std::conj(after.coefficients[0][i * n_pw + x]) * after.coefficients[0][j * n_pw + x];
      EXPECT_LT(std::abs(overlap - (i == j ? 1.0 : 0.0)), 1e-12);
    }
  *mixing = 0.0;
  for (std::size_t i = 0; i < 4; ++i) {
    double kept = 0.0;
    for (std::size_t j = 0; j < 4; ++j) {
      Cplx overlap;
      for (std::size_t x = 0; x < n_pw; ++x)
        overlap +=
            std::conj(before.coefficients[0][j * n_pw + x]) * after.coefficients[0][i * n_pw + x];
      kept += std::norm(overlap);
    }
    *mixing = std::max(*mixing, 1.0 - kept);
  }
  std::vector<double> energies;
  for (int ik = 0; ik < field.waves.n_k(); ++ik)
    for (int n = 0; n < o.band_max; ++n)
      energies.push_back(field.waves.energy(0, ik, n) * kRydberg_ev);
  return energies;
}

EmpiricalCrystal by_velocity() {
  EmpiricalCrystal crystal = SmallSilicon::small_crystal();
  crystal.by_velocity = true;
  crystal.bands = 12;
  return crystal;
}

// Self-consistent states: the same energies whatever the basis of the multiplets was (covariance)
// and wherever the iteration starts; occupied and empty states mix. W of the mean field, and W of
// the new states.
TEST(OuterLoops, SelfConsistentStatesAreCovariant) {
  std::vector<double> fixed_w;
  for (const OuterLoop kind : {OuterLoop::kQsGw0, OuterLoop::kQsGw}) {
    SmallSilicon s(by_velocity());
    const auto vxc = s.toy_vxc(s.options());
    double mixing = 0.0, mixing_rotated = 0.0;
    const auto energies = state_loop(s, kind, 0.0, vxc, &mixing);
    for (int ik = 0; ik < s.field.waves.n_k(); ++ik)
      test::rotate_multiplets(s.field, ik, s.options().band_max,
                              71 + static_cast<std::uint32_t>(ik));
    const auto rotated = state_loop(s, kind, 0.5, vxc, &mixing_rotated);
    EXPECT_GT(mixing, 1e-6);
    EXPECT_NEAR(mixing, mixing_rotated, 1e-6);
    for (std::size_t i = 0; i < energies.size(); ++i)
      EXPECT_NEAR(energies[i], rotated[i], 1e-5) << i;
    if (kind == OuterLoop::kQsGw0)
      fixed_w = energies;
    else {
      double difference = 0.0;
      for (std::size_t i = 0; i < energies.size(); ++i)
        difference = std::max(difference, std::abs(energies[i] - fixed_w[i]));
      EXPECT_GT(difference, 1e-3) << "W did not move";
    }
  }
}

// W of new states needs k·p; and energies that move rigidly leave the dipoles alone: ε of a
// scissored gap scales transitions only.
TEST(OuterLoops, NewScreeningNeedsTheVelocityForm) {
  SmallSilicon s;
  ASSERT_FALSE(s.field.by_velocity);
  const SigmaOptions o = s.options();
  OuterLoopReport report;
  Alone alone(s, s.field, s.epsilon, o);
  EXPECT_THROW(iterate_states(
                   alone.problem, {.kind = OuterLoop::kQsGw}, {}, s.toy_vxc(o),
                   [&](const MeanField& of) { return s.screening(of); }, &report),
               InvalidInput);
  // The head of χ at q → 0 is Σ|⟨v|r|c⟩|²/(E_c − E_v): scissored empty bands by k·p as by shifted
  // states that moved along.
  SmallSilicon velocity(by_velocity());
  for (SmallSilicon* one : {&s, &velocity}) {
    one->field.reference_energy_ry = one->field.dipole_energy_ry = one->field.waves.energy_ry;
    for (int ik = 0; ik < one->field.waves.n_k(); ++ik)
      for (int n = 4; n < one->field.waves.n_bands; ++n)
        one->field.waves.energy_ry[static_cast<std::size_t>(ik * one->field.waves.n_bands + n)] +=
            0.1;
  }
  const double by_states = s.screening(s.field)[0].inverse[0][0].real(),
               by_kp = velocity.screening(velocity.field)[0].inverse[0][0].real();
  // WFNq's sphere of plane waves jumps with q₀: 2e-4 of the head. Dipoles divided by the new
  // energies would miss a third of it.
  EXPECT_NEAR(by_kp, by_states, 1e-3 * by_states);
}

/// Cancels at the n-th report of finished work, or right after a number of turns.
class Interrupter : public SilentProgress {
 public:
  explicit Interrupter(int after_reports, int after_turns = 1000000)
      : left_(after_reports), turns_left_(after_turns) {}
  bool cancelled() const override { return left_ <= 0 || turns_left_ <= 0; }
  void log(std::string_view line) override {
    if (line.starts_with("outer loop, turn")) --turns_left_;
  }

 protected:
  void on_report(std::string_view, std::int64_t, std::int64_t) override { --left_; }

 private:
  int left_, turns_left_;
};

struct LoopResult {
  std::vector<double> energy_ry, change_ev;
  std::vector<std::vector<Cplx>> coefficients;
  bool operator==(const LoopResult&) const = default;
};

/// One loop on so many devices, taken up from `directory` if that holds something.
/// evGW starts from the mean field's own energies: what a turn left is then all that moves W.
LoopResult loop_on(SmallSilicon& s, OuterLoop kind, int devices, Progress& progress,
                   const std::filesystem::path& directory,
                   const std::vector<std::vector<Cplx>>& vxc) {
  MeanField field = s.field;
  std::vector<DielectricMatrix> epsilon = s.epsilon;
  SigmaOptions o = s.options();
  o.rules.screened_exchange_cut = 0.0;
  DeviceTeam team(std::vector<Device>(static_cast<std::size_t>(devices), find_device("cpu")));
  Checkpoint checkpoint =
      directory.empty() ? Checkpoint() : Checkpoint(directory, 7, 0.0, progress);
  const OuterLoopProblem problem{field, epsilon, o, s.coulomb, team, checkpoint, "loop/", progress};
  const OuterLoopOptions loop{.kind = kind,
                              .max_iterations = 60,
                              .tolerance_ev = 0.02,
                              .start_shift_ev = kind == OuterLoop::kEvGw ? 0.0 : 0.3};
  const EpsilonOptions for_epsilon{.epsilon_cutoff_ry = 3.0, .bands = o.bands};
  const auto screening = [&](const MeanField& of) {
    return dielectric_matrices(of, screening_points(of), for_epsilon, problem.context());
  };
  OuterLoopReport report;
  std::vector<SelfEnergyAtK> sigma;
  if (replaces_states(kind))
    iterate_states(problem, loop, {}, vxc, screening, &report);
  else
    iterate_eigenvalues(problem, {loop, {Derivative::kAnalytic, 0.0}}, test::diagonal_of(vxc),
                        screening, &sigma, &report);
  EXPECT_TRUE(report.converged);
  LoopResult result{field.waves.energy_ry, report.change_ev, {}};
  for (const KPointWaves& waves : field.waves.waves)
    result.coefficients.push_back(waves.coefficients[0]);
  return result;
}

// The loops on one, two and three devices, and interrupted at many points and taken up by another
// number of devices: the same bits, turns counted once.
TEST(OuterLoops, DevicesAndInterruptionsDoNotShow) {
  for (const OuterLoop kind : {OuterLoop::kEvGw, OuterLoop::kQsGw}) {
    SmallSilicon s(by_velocity());
    const auto vxc = s.toy_vxc(s.options());
    SilentProgress silent;
    const LoopResult whole = loop_on(s, kind, 1, silent, {}, vxc);
    EXPECT_GT(whole.change_ev.size(), 2u);
    EXPECT_TRUE(whole == loop_on(s, kind, 3, silent, {}, vxc)) << "three devices";
    int interruptions = 0;
    for (int after = 3; after < 400; after = 2 * after + 5) {
      quasi::test::TemporaryDirectory directory;
      Interrupter interrupter(after);
      try {
        loop_on(s, kind, 1, interrupter, directory.path(), vxc);
        break;
      } catch (const Cancelled&) {
        ++interruptions;
      }
      EXPECT_TRUE(whole == loop_on(s, kind, 1 + after % 2, silent, directory.path(), vxc))
          << "interrupted at report " << after;
    }
    EXPECT_GE(interruptions, 3);
    // With nothing done of the turn that follows: all of it comes from what the turn before left.
    for (const int turns : {1, 2}) {
      quasi::test::TemporaryDirectory directory;
      Interrupter interrupter(1000000, turns);
      EXPECT_THROW(loop_on(s, kind, 1, interrupter, directory.path(), vxc), Cancelled);
      EXPECT_TRUE(whole == loop_on(s, kind, 2, silent, directory.path(), vxc))
          << "interrupted after iteration " << turns;
    }
  }
}

// What self-consistency adds to the mean field, written out: V_H of a change of density, and X +
// ½H[Σ(E_l) + Σ(E_m)].
TEST(OuterLoops, PotentialsAreWhatTheySay) {
  SmallSilicon s;
  const auto& header = s.field.density.header;
  std::vector<std::vector<Cplx>> change{std::vector<Cplx>(header.g.size())};
  for (std::size_t i = 0; i < header.g.size(); ++i)
    change[0][i] = Cplx(0.3, -0.1 * static_cast<double>(i % 7));
  const PlaneWaveField v = hartree_potential(header, change);
  for (std::size_t i = 0; i < header.g.size(); ++i) {
    const Vec3 g = to_real(header.g[i]);
    const double length2 = metric_dot(header.crystal.bdot, g, g);
    const Cplx expected = length2 < 1e-12 ? 0.0
                                          : 8.0 * kPi * change[0][i] /
                                                (length2 * header.crystal.volume_bohr3);  // e² = 2
    EXPECT_LT(std::abs(v.values[0][i] - expected), 1e-14);
  }
  SigmaOptions o = s.options();
  o.kpoints = {1};
  SigmaMatrixOptions at;
  at.at_states = true;
  const auto m = s.matrix(o, at);
  const auto n = static_cast<std::size_t>(o.band_max);
  const auto potential = quasiparticle_potential(m[0], m[0].energy_ry);
  double size = 0.0;
  for (std::size_t l = 0; l < n; ++l)
    for (std::size_t k = 0; k < n; ++k) {
      const auto hermitian = [&](std::size_t e) {
        return 0.5 * (m[0].at(e)[l * n + k] + std::conj(m[0].at(e)[k * n + l]));
      };
      // Of degenerate energies the first is the one taken, and has the same Σ.
      EXPECT_LT(std::abs(potential[l * n + k] - m[0].x_ry[l * n + k] -
                         0.5 * (hermitian(l) + hermitian(k))),
                1e-10);
      size = std::max(size, std::abs(hermitian(l)));
    }
  EXPECT_GT(size, 1e-2);
}

// A cell with enough bands for several parts at one (k, q): each adds its own bands, and exchange
// is added once. Diagonal against the diagonal sum, which is cut elsewhere.
TEST(FullMatrix, BlocksOfBandsAddUp) {
  EmpiricalCrystal crystal;
  crystal.cubic_cell = true;
  crystal.wavefunction_cutoff_ry = 5.0;
  crystal.bands = 150;
  SmallSilicon s(crystal);
  SigmaOptions o = s.options(20);
  ASSERT_GE(o.bands, 128) << "two parts of 64 bands";
  SigmaMatrixOptions at;
  at.at_states = true;
  const auto matrix = s.matrix(o, at);
  const auto diagonal = s.sigma(o);
  const auto n = static_cast<std::size_t>(matrix[0].n);
  for (std::size_t l = 0; l < n; ++l) {
    EXPECT_NEAR(matrix[0].x_ry[l * n + l].real(), diagonal[0].x_ry[l], 1e-10) << l;
    EXPECT_LT(
        std::abs(matrix[0].at(l)[l * n + l] - diagonal[0].sx_ry[0][l] - diagonal[0].ch_ry[0][l]),
        1e-10)
        << l;
  }
}

// Σ_lm(E) and the static matrix of self-consistency follow a rotation U of the multiplets: Σ' = U*
// Σ Uᵀ; the static one is Hermitian.
TEST(FullMatrix, FollowsRotationsOfMultiplets) {
  SmallSilicon s;
  SigmaOptions o = s.options();
  o.kpoints = {0};
  SigmaMatrixOptions at;
  at.at_states = true;
  const auto before = s.matrix(o, at);
  const int n = o.band_max;
  const auto u = test::rotate_multiplets(s.field, 0, n, 5);
  const auto after = s.matrix(o, at);
  std::vector<double> outer;
  for (int l = 0; l < n; ++l) outer.push_back(s.field.waves.energy(0, 0, l));
  const auto rotated = [&](const Cplx* m, std::size_t i, std::size_t j) {
    Cplx sum;
    const auto size = static_cast<std::size_t>(n);
    for (std::size_t a = 0; a < size; ++a)
      for (std::size_t b = 0; b < size; ++b)
        sum += std::conj(u[i * size + a]) * m[a * size + b] * u[j * size + b];
    return sum;
  };
  const auto static_before = quasiparticle_potential(before[0], outer),
             static_after = quasiparticle_potential(after[0], outer);
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
    for (std::size_t j = 0; j < static_cast<std::size_t>(n); ++j) {
      const std::size_t at_ij = i * static_cast<std::size_t>(n) + j;
      EXPECT_LT(std::abs(after[0].x_ry[at_ij] - rotated(before[0].x_ry.data(), i, j)), 1e-11);
      for (std::size_t e = 0; e < before[0].energy_ry.size(); ++e)
        EXPECT_LT(std::abs(after[0].at(e)[at_ij] - rotated(before[0].at(e), i, j)), 1e-11)
            << i << ' ' << j;
      EXPECT_LT(std::abs(static_after[at_ij] - rotated(static_before.data(), i, j)), 1e-11);
      EXPECT_LT(std::abs(static_after[at_ij] -
                         std::conj(static_after[j * static_cast<std::size_t>(n) + i])),
                1e-14);
    }
}

// Away from poles Σ(E) is Hermitian (property 12): W is, and every factor is real. And different
// irreducible representations do not mix: of the 64 elements at Γ between Γ1, Γ25', Γ15 and Γ2',
// only equal ones survive, 1e-9 eV (property 6).
TEST(FullMatrix, HermitianAndDiagonalInRepresentations) {
  SmallSilicon s;
  SigmaOptions o = s.options();
  o.kpoints = {0};
  const auto m = s.matrix(o, {});
  for (std::size_t e = 0; e < m[0].energy_ry.size(); ++e)
    for (std::size_t i = 0; i < 8; ++i)
      for (std::size_t j = 0; j < 8; ++j) {
        EXPECT_LT(std::abs(m[0].at(e)[8 * i + j] - std::conj(m[0].at(e)[8 * j + i])), 1e-11);
        if (i != j) {
          EXPECT_LT(std::abs(m[0].at(e)[8 * i + j]) * kRydberg_ev, 1e-9) << i << ' ' << j;
        }
      }
}

// Separable sums in place of the two products, through the whole zone sum: rational and exponential
// to 1e-5 eV and better.
TEST(FullMatrix, SeparableSumsThroughTheZone) {
  SmallSilicon s;
  SigmaOptions o = s.options();
  o.kpoints = {0};
  const auto direct = s.matrix(o, {});
  using Method = OffDiagonalOptions::Method;
  for (const auto& [method, tolerance, bound_ev] :
       {std::tuple{Method::kRationalSums, 1e-9, 1e-7}, {Method::kExponentialSums, 1e-7, 1e-5}}) {
    SigmaMatrixOptions m;
    m.kernel.method = method;
    m.kernel.tolerance_relative = tolerance;
    const auto sums = s.matrix(o, m);
    double worst = 0.0;
    for (std::size_t i = 0; i < direct[0].correlation_ry.size(); ++i)
      worst = std::max(
          worst, std::abs(sums[0].correlation_ry[i] - direct[0].correlation_ry[i]) * kRydberg_ev);
    EXPECT_LT(worst, bound_ev);
    EXPECT_GT(worst, 0.0);
  }
}

// A root of the Dyson equation solves it: the matrix made anew at that very energy has it as an
// eigenvalue (the grid of 0.5 eV interpolates to 1e-4 eV). With Σ diagonal in representations it is
// the graphical solution of the diagonal.
TEST(FullMatrix, DysonRootsSolveTheEquation) {
  SmallSilicon s;
  test::rotate_multiplets(s.field, 1, s.options().band_max, 29);  // In this basis Σ_lm is complex.
  SigmaOptions o = s.options();
  o.kpoints = {1};
  SigmaOptions all = s.options();
  const auto every = s.toy_vxc(all);
  const std::vector<std::vector<Cplx>> vxc{every[1]};
  const auto grid = s.matrix(o, {});
  const auto states = solve_dyson(s.field, grid, vxc, o);
  const auto n = static_cast<std::size_t>(o.band_max);
  ASSERT_EQ(states.size(), n);
  for (const DysonState& state : states) {
    ASSERT_TRUE(state.energy_ev.has_value()) << state.band;
    SigmaMatrixOptions there;
    there.energies_ry = {*state.energy_ev / kRydberg_ev};
    const auto exact = s.matrix(o, there);
    std::vector<Cplx> h(n * n);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        const Cplx sigma =
            exact[0].x_ry[i * n + j] + 0.5 * (exact[0].correlation_ry[i * n + j] +
                                              std::conj(exact[0].correlation_ry[j * n + i]));
        h[i * n + j] =
            kRydberg_ev * sigma - vxc[0][i * n + j] +
            (i == j ? kRydberg_ev * s.field.waves.energy(0, 1, static_cast<int>(i)) : 0.0);
      }
    const HermitianEigen eigen = hermitian_eigen(h, o.band_max);
    // Near the gap; far from it Σ has poles and steps between the points.
    EXPECT_NEAR(eigen.values[static_cast<std::size_t>(state.band - 1)], *state.energy_ev,
                state.band >= 3 && state.band <= 6 ? 2e-4 : 2e-2)
        << state.band;
    EXPECT_GT(state.own_weight, 0.5);
    EXPECT_LE(state.own_weight, 1.0 + 1e-12);
  }
}

// The same wavefunctions in two equal spin channels are the unpolarised crystal: ε⁻¹, Σ of each
// spin, full matrices, 1e-12.
TEST(Spin, IdenticalChannelsEqualTheUnpolarisedRun) {
  SmallSilicon s;
  const auto doubled = [](Wavefunctions waves) {
    waves.header.n_spins = 2;
    for (KPointWaves& point : waves.waves) point.coefficients.push_back(point.coefficients[0]);
    const auto repeat = [](auto list) {
      auto result = list;
      result.insert(result.end(), list.begin(), list.end());
      return result;
    };
    waves.first_occupied = repeat(waves.first_occupied);
    waves.last_occupied = repeat(waves.last_occupied);
    waves.energy_ry = repeat(waves.energy_ry);
    waves.occupation = repeat(waves.occupation);
    return waves;
  };
  PlaneWaveField density = s.field.density;
  density.header.n_spins = 2;
  for (Cplx& value : density.values[0]) value *= 0.5;
  density.values.push_back(density.values[0]);
  const MeanField polarised =
      make_mean_field(doubled(s.field.waves), doubled(*s.field.shifted), density);
  const auto epsilon = s.screening(polarised);
  for (std::size_t q = 0; q < epsilon.size(); ++q)
    for (std::size_t i = 0; i < epsilon[q].inverse[0].size(); ++i)
      EXPECT_LT(std::abs(epsilon[q].inverse[0][i] - s.epsilon[q].inverse[0][i]), 1e-12);
  const SigmaOptions o = s.options();
  const auto one = s.sigma(o), two = s.sigma(polarised, epsilon, o);
  ASSERT_EQ(two.size(), 2 * one.size());
  for (std::size_t i = 0; i < two.size(); ++i)
    for (std::size_t l = 0; l < one[i / 2].x_ry.size(); ++l) {
      EXPECT_NEAR(two[i].x_ry[l], one[i / 2].x_ry[l], 1e-12);
      EXPECT_LT(std::abs(two[i].ch_ry[0][l] + two[i].sx_ry[0][l] - one[i / 2].ch_ry[0][l] -
                         one[i / 2].sx_ry[0][l]),
                1e-12);
      EXPECT_LT(std::abs(two[i].slope[l] - one[i / 2].slope[l]), 1e-11);
    }
}

}  // namespace
}  // namespace quasi::gw
