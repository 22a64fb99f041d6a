#include "workers/gw/solver/self_energy/loops/loop_steps.hpp"

#include <algorithm>

#include "workers/backend/error.hpp"
#include "workers/gw/solver/ordered_sum.hpp"

namespace quasi::gw {

double& element_of(std::vector<double>& list, const Wavefunctions& waves, int spin, int ik,
                   int band) {
  return list[(static_cast<std::size_t>(spin) * waves.k.size() + static_cast<std::size_t>(ik)) *
                  static_cast<std::size_t>(waves.n_bands) +
              static_cast<std::size_t>(band)];
}
double& energy_of(Wavefunctions& waves, int spin, int ik, int band) {
  return element_of(waves.energy_ry, waves, spin, ik, band);
}

void require_every_k_and_vxc(const OuterLoopProblem& problem, bool has_vxc) {
  if (static_cast<int>(problem.options.kpoints.size()) != problem.field.waves.n_k())
    throw InvalidInput(
        "sigma.outer_loop needs Σ at every irreducible k-point, because all of them enter G; leave "
        "out sigma.kpoints");
  if (!has_vxc) throw InvalidInput("sigma.outer_loop needs V_xc: give meanfield.vxc");
}

void start_from_mean_field(MeanField& field, double shift_ry) {
  if (field.reference_energy_ry.empty())
    field.reference_energy_ry = field.dipole_energy_ry = field.waves.energy_ry;
  for (int spin = 0; spin < field.n_spins(); ++spin)
    for (int ik = 0; ik < field.waves.n_k(); ++ik)
      for (int n = field.n_occupied_of_spin[static_cast<std::size_t>(spin)];
           n < field.waves.n_bands; ++n)
        energy_of(field.waves, spin, ik, n) += shift_ry;
}

void move_outer_bands(MeanField& field, const SigmaOptions& options, int spin, int ik) {
  const auto correction = [&](int band) {
    return field.waves.energy(spin, ik, band) - field.reference_energy(spin, ik, band);
  };
  const double below = correction(options.band_min - 1), above = correction(options.band_max - 1);
  for (int n = 0; n < options.band_min - 1; ++n)
    energy_of(field.waves, spin, ik, n) = field.reference_energy(spin, ik, n) + below;
  for (int n = options.band_max; n < field.waves.n_bands; ++n)
    energy_of(field.waves, spin, ik, n) = field.reference_energy(spin, ik, n) + above;
}

void give_up(const OuterLoopOptions& loop, double change_ev) {
  throw NotConverged("sigma.outer_loop did not reach " + std::to_string(loop.tolerance_ev) +
                     " eV in " + std::to_string(loop.max_iterations) +
                     " iterations; the last one still changed an energy by " +
                     std::to_string(change_ev) +
                     " eV. States far from the gap cross steps of the pole rules; narrow "
                     "sigma.band_min … band_max or raise sigma.outer_tolerance_ev");
}

void report_turn(const OuterLoopProblem& p, double change_ev, OuterLoopReport* report) {
  report->change_ev.push_back(change_ev);
  double top = -1e300, bottom = 1e300;
  for (int spin = 0; spin < p.field.n_spins(); ++spin) {
    const int n_v = p.field.n_occupied_of_spin[static_cast<std::size_t>(spin)];
    for (int ik = 0; ik < p.field.waves.n_k(); ++ik) {
      top = std::max(top, p.field.waves.energy(spin, ik, n_v - 1));
      bottom = std::min(bottom, p.field.waves.energy(spin, ik, n_v));
    }
  }
  p.progress.metric("gap_ev", (bottom - top) * kRydberg_ev);
  p.progress.log("outer loop, turn " + std::to_string(report->change_ev.size()) +
                 ": largest change " + std::to_string(change_ev) + " eV");
}

void LoopState::enter(int turn) {
  p_.checkpoint.enter(p_.scope + "turn" + std::to_string(turn) + "/");
}

void LoopState::leave(int turn, const OuterLoopReport& report,
                      const std::vector<std::vector<double>*>& values) {
  p_.checkpoint.enter(p_.scope);
  if (!p_.checkpoint.keeps()) return;
  std::vector<double> state{static_cast<double>(turn),
                            static_cast<double>(report.change_ev.size())};
  state.insert(state.end(), report.change_ev.begin(), report.change_ev.end());
  for (const std::vector<double>* list : values)
    state.insert(state.end(), list->begin(), list->end());
  p_.checkpoint.replace("turn", "turns",
                        piece_of(std::make_shared<const std::vector<double>>(std::move(state))));
}

int LoopState::resume(OuterLoopReport* report, const std::vector<std::vector<double>*>& values) {
  p_.checkpoint.enter(p_.scope);
  const Piece kept = kept_pieces(p_.team.ranks(), p_.checkpoint, {"turns"})[0];
  if (kept.data == nullptr) return 0;
  const double* at = kept.data + 2;
  report->change_ev.assign(at, at + static_cast<std::size_t>(kept.data[1]));
  at += report->change_ev.size();
  for (std::vector<double>* list : values) {
    std::copy(at, at + list->size(), list->begin());
    at += list->size();
  }
  p_.progress.log("outer loop: taken up after turn " + std::to_string(report->change_ev.size()));
  return static_cast<int>(kept.data[0]) + 1;
}

}  // namespace quasi::gw
