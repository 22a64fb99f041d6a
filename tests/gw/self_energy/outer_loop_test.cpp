// Self-consistency (evGW₀, evGW, qsGW₀, qsGW) on a small built-in crystal: fixed points do not
// depend on the start, on the basis of multiplets, on the number of devices or on interruptions.

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

/// States and report of a loop that has ended.
struct Converged {
  std::vector<Quasiparticle> list;
  OuterLoopReport report;
};

/// Runs an eigenvalue loop from energies of empty states shifted by `start_shift_ev` to 1e-8 eV,
/// and checks that bands above the window move with its last band.
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
  // Bands above the window carry the correction of its last band.
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

// A loop without V_xc, and a loop that computes some k-points only, are refused as invalid input.
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

/// Runs a loop that replaces states to 1e-6 eV and checks that they stay orthonormal. Returns the
/// energies in eV, [k][band]; `mixing` is the largest weight of a new occupied state outside
/// the old occupied states.
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
  // The occupied states of the last k are orthonormal, and have changed against the old ones.
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

/// The small crystal with q → 0 by k·p and fewer bands.
EmpiricalCrystal by_velocity() {
  EmpiricalCrystal crystal = SmallSilicon::small_crystal();
  crystal.by_velocity = true;
  crystal.bands = 12;
  return crystal;
}

// Self-consistent energies do not depend on the basis of the multiplets (covariance) or on the
// start of the iteration. Occupied and empty states mix. Both W are used: that of the mean field
// (qsGW₀) and that of the new states (qsGW).
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

// W of new states needs the k·p form; a field with shifted states (WFNq) is refused. A rigid shift
// of the empty bands leaves the dipoles unchanged: only the transition energies in ε scale.
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
  // The head of χ at q → 0 is Σ|⟨v|r|c⟩|²/(E_c − E_v). With empty bands shifted rigidly, k·p and
  // the shifted states of WFNq must agree.
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
  // The plane-wave sphere of WFNq changes with q₀, which moves the head by 2e-4 of its value.
  // Dipoles divided by the new energies would lose a third of the head.
  EXPECT_NEAR(by_kp, by_states, 1e-3 * by_states);
}

/// Cancels a run at its n-th progress report, or after a number of iterations of the outer loop.
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

/// Energies, their changes and the states that a loop ends with; compared bit for bit.
struct LoopResult {
  std::vector<double> energy_ry, change_ev;
  std::vector<std::vector<Cplx>> coefficients;
  bool operator==(const LoopResult&) const = default;
};

/// Runs one loop on `devices` CPU devices; resumes from `directory` if it holds a checkpoint, and
/// keeps none if the path is empty. evGW starts from the energies of the mean field, so that only
/// the result of the iteration before moves W.
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

// The loops on one, two and three devices give equal bits. A run that is interrupted anywhere and
// resumed on another number of devices gives the bits of the uninterrupted run, and counts each
// iteration once.
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
    // Interrupted right after an iteration, the run resumes from the state that it left.
    for (const int turns : {1, 2}) {
      quasi::test::TemporaryDirectory directory;
      Interrupter interrupter(1000000, turns);
      EXPECT_THROW(loop_on(s, kind, 1, interrupter, directory.path(), vxc), Cancelled);
      EXPECT_TRUE(whole == loop_on(s, kind, 2, silent, directory.path(), vxc))
          << "interrupted after iteration " << turns;
    }
  }
}

// The potentials that self-consistency adds to the mean field equal their formulas: V_H of a change
// of density, and X + ½H[Σ(E_l) + Σ(E_m)] with H the Hermitian part.
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
    // 8π is 4πe² with e² = 2 in Rydberg units.
    const Cplx expected =
        length2 < 1e-12 ? 0.0 : 8.0 * kPi * change[0][i] / (length2 * header.crystal.volume_bohr3);
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
      // Among degenerate energies the first is used; Σ is equal at all of them.
      EXPECT_LT(std::abs(potential[l * n + k] - m[0].x_ry[l * n + k] -
                         0.5 * (hermitian(l) + hermitian(k))),
                1e-10);
      size = std::max(size, std::abs(hermitian(l)));
    }
  EXPECT_GT(size, 1e-2);
}

}  // namespace
}  // namespace quasi::gw
