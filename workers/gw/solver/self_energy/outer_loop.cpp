#include "workers/gw/solver/self_energy/outer_loop.hpp"

#include <algorithm>
#include <cmath>

#include "workers/gw/solver/self_energy/loops/loop_steps.hpp"

namespace quasi::gw {
namespace {

/// Adds to each energy of the shifted set the correction of the state at the point q₀ away from it.
void move_shifted_bands(MeanField& field, const std::vector<double>& original_shifted) {
  Wavefunctions& shifted = *field.shifted;
  for (int spin = 0; spin < field.n_spins(); ++spin)
    for (int ik = 0; ik < shifted.n_k(); ++ik) {
      const int at =
          field.zone.rotation_to(shifted.k[static_cast<std::size_t>(ik)] - field.q0).irreducible;
      for (int n = 0; n < shifted.n_bands; ++n) {
        const double correction =
            field.waves.energy(spin, at, n) - field.reference_energy(spin, at, n);
        const auto index =
            (static_cast<std::size_t>(spin) * shifted.k.size() + static_cast<std::size_t>(ik)) *
                static_cast<std::size_t>(shifted.n_bands) +
            static_cast<std::size_t>(n);
        shifted.energy_ry[index] = original_shifted[index] + correction;
      }
    }
}

}  // namespace

std::vector<Quasiparticle> iterate_eigenvalues(const OuterLoopProblem& p, const EigenvalueLoop& how,
                                               const std::vector<std::vector<double>>& vxc_ev,
                                               const Screening& screening,
                                               std::vector<SelfEnergyAtK>* sigma,
                                               OuterLoopReport* report) {
  const OuterLoopOptions& loop = how.options;
  require_every_k_and_vxc(p, !vxc_ev.empty());
  const bool move_screening = loop.kind == OuterLoop::kEvGw;
  const std::vector<double> original_shifted =
      p.field.shifted ? p.field.shifted->energy_ry : std::vector<double>{};
  const auto follow = [&] {
    if (!move_screening) return;
    if (p.field.shifted) move_shifted_bands(p.field, original_shifted);
    p.epsilon = screening(p.field);
  };
  start_from_mean_field(p.field, loop.start_shift_ev / kRydberg_ev);
  LoopState state(p);
  const int first_turn = state.resume(report, {&p.field.waves.energy_ry});
  state.enter(first_turn);
  if (first_turn > 0 || loop.start_shift_ev != 0.0) follow();
  for (int turn = first_turn; turn < loop.max_iterations; ++turn) {
    *sigma = self_energy(p.field, p.epsilon, p.options, p.context(), nullptr);
    std::vector<Quasiparticle> list =
        quasiparticles(p.field, *sigma, vxc_ev, p.options, how.rule, how.remainder);
    double change = 0.0;
    for (const Quasiparticle& qp : list) {
      double& energy = energy_of(p.field.waves, qp.spin - 1, qp.k_index, qp.band - 1);
      change = std::max(change, std::abs(*qp.qp1_ev - energy * kRydberg_ev));
      energy = *qp.qp1_ev / kRydberg_ev;
    }
    for (int spin = 0; spin < p.field.n_spins(); ++spin)
      for (int ik = 0; ik < p.field.waves.n_k(); ++ik)
        move_outer_bands(p.field, p.options, spin, ik);
    report_turn(p, change, report);
    if (change < loop.tolerance_ev) {
      report->converged = true;
      return list;
    }
    state.leave(turn, *report, {&p.field.waves.energy_ry});
    state.enter(turn + 1);
    follow();
  }
  give_up(loop, report->change_ev.back());
}

}  // namespace quasi::gw
