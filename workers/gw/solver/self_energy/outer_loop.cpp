#include "workers/gw/solver/self_energy/outer_loop.hpp"

#include <algorithm>
#include <cmath>

#include "workers/backend/error.hpp"
#include "workers/gw/solver/mean_field/density.hpp"
#include "workers/gw/solver/ordered_sum.hpp"

namespace quasi::gw {
namespace {

/// Of a list [spin][k][band].
double& element_of(std::vector<double>& list, const Wavefunctions& waves, int spin, int ik,
                   int band) {
  return list[(static_cast<std::size_t>(spin) * waves.k.size() + static_cast<std::size_t>(ik)) *
                  static_cast<std::size_t>(waves.n_bands) +
              static_cast<std::size_t>(band)];
}
double& energy_of(Wavefunctions& waves, int spin, int ik, int band) {
  return element_of(waves.energy_ry, waves, spin, ik, band);
}

void require_every_k(const MeanField& field, const SigmaOptions& options) {
  if (static_cast<int>(options.kpoints.size()) != field.waves.n_k())
    throw InvalidInput(
        "sigma.outer_loop needs Σ at every irreducible k-point, because all of them enter G; leave "
        "out sigma.kpoints");
}

/// Keeps the mean field's energies aside and starts from them, empty bands shifted.
void start(MeanField& field, double shift_ry) {
  if (field.reference_energy_ry.empty())
    field.reference_energy_ry = field.dipole_energy_ry = field.waves.energy_ry;
  for (int spin = 0; spin < field.n_spins(); ++spin)
    for (int ik = 0; ik < field.waves.n_k(); ++ik)
      for (int n = field.n_occupied_of_spin[static_cast<std::size_t>(spin)];
           n < field.waves.n_bands; ++n)
        energy_of(field.waves, spin, ik, n) += shift_ry;
}

/// Bands outside the window follow the nearest one inside, at one k.
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

/// The shifted set's energies get the correction of the point q₀ away from them.
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

[[noreturn]] void fail(const OuterLoopOptions& loop, double change) {
  throw NotConverged("sigma.outer_loop did not reach " + std::to_string(loop.tolerance_ev) +
                     " eV in " + std::to_string(loop.max_iterations) +
                     " iterations; the last one still changed an energy by " +
                     std::to_string(change) +
                     " eV. States far from the gap cross steps of the pole rules; narrow "
                     "sigma.band_min … band_max or raise sigma.outer_tolerance_ev");
}

/// What a turn came to: its change, and the gap of the energies that now enter G.
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

/// What one turn leaves to the next, in the checkpoint. Everything else follows from it and from
/// the mean field.
class LoopState {
 public:
  explicit LoopState(const OuterLoopProblem& problem) : p_(problem) {}

  /// Names of this turn's parts from now on.
  void enter(int turn) { p_.checkpoint.enter(p_.scope + "turn" + std::to_string(turn) + "/"); }
  /// A finished turn, and what it leaves. The parts of all turns so far are forgotten.
  void leave(int turn, const OuterLoopReport& report,
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
  /// The turn to begin with; lists of the right lengths are filled with what the one before left.
  /// Together.
  int resume(OuterLoopReport* report, const std::vector<std::vector<double>*>& values) {
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

 private:
  const OuterLoopProblem& p_;
};

/// Complex numbers as the doubles they consist of, and back.
std::vector<double> flat(const std::vector<Cplx>& values) {
  const auto* data = reinterpret_cast<const double*>(values.data());
  return {data, data + 2 * values.size()};
}
void restore(const std::vector<double>& from, std::vector<Cplx>& to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = {from[2 * i], from[2 * i + 1]};
}

}  // namespace

std::vector<Quasiparticle> iterate_eigenvalues(const OuterLoopProblem& p, const EigenvalueLoop& how,
                                               const std::vector<std::vector<double>>& vxc_ev,
                                               const Screening& screening,
                                               std::vector<SelfEnergyAtK>* sigma,
                                               OuterLoopReport* report) {
  const OuterLoopOptions& loop = how.options;
  require_every_k(p.field, p.options);
  if (vxc_ev.empty()) throw InvalidInput("sigma.outer_loop needs V_xc: give meanfield.vxc");
  const bool move_screening = loop.kind == OuterLoop::kEvGw;
  const std::vector<double> original_shifted =
      p.field.shifted ? p.field.shifted->energy_ry : std::vector<double>{};
  const auto follow = [&] {
    if (!move_screening) return;
    if (p.field.shifted) move_shifted_bands(p.field, original_shifted);
    p.epsilon = screening(p.field);
  };
  start(p.field, loop.start_shift_ev / kRydberg_ev);
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
  fail(loop, report->change_ev.back());
}

void iterate_states(const OuterLoopProblem& p, const OuterLoopOptions& loop,
                    const SigmaMatrixOptions& matrix, const std::vector<std::vector<Cplx>>& vxc_ev,
                    const Screening& screening, OuterLoopReport* report) {
  require_every_k(p.field, p.options);
  if (vxc_ev.empty()) throw InvalidInput("sigma.outer_loop needs V_xc: give meanfield.vxc");
  const bool move_screening = loop.kind == OuterLoop::kQsGw;
  if (move_screening && !p.field.by_velocity)
    throw InvalidInput(
        "sigma.outer_loop = \"qsgw\" makes W of new states, which those of WFNq cannot follow: set "
        "meanfield.long_wave = \"kp\"");
  MeanField& field = p.field;
  const int first = p.options.band_min - 1;
  const auto n = static_cast<std::size_t>(p.options.band_max - p.options.band_min + 1);
  start(field, loop.start_shift_ev / kRydberg_ev);
  LoopState state(p);
  const auto& g = field.density.header.g;
  const auto stored_density = field.density.values;
  const auto density_before =
      summed_density(field.waves, field.zone, field.n_occupied_of_spin, g, p.kernels());
  // Rows i: the present state i in the mean field's states j.
  std::vector<std::vector<Cplx>> rotation(vxc_ev.size(), std::vector<Cplx>(n * n));
  for (auto& u : rotation)
    for (std::size_t i = 0; i < n; ++i) u[i * n + i] = 1.0;
  // The states are the mean field's, rotated: a turn leaves their coefficients, so that those of a
  // resumed loop have the same bits.
  std::vector<std::vector<Cplx>*> complex_state;
  for (auto& u : rotation) complex_state.push_back(&u);
  for (KPointWaves& waves : field.waves.waves)
    for (auto& c : waves.coefficients) complex_state.push_back(&c);
  const auto packed_state = [&] {
    std::vector<std::vector<double>> lists{field.waves.energy_ry, field.dipole_energy_ry};
    for (const std::vector<Cplx>* list : complex_state) lists.push_back(flat(*list));
    return lists;
  };
  const auto pointers = [](std::vector<std::vector<double>>& lists) {
    std::vector<std::vector<double>*> to;
    for (auto& list : lists) to.push_back(&list);
    return to;
  };
  int first_turn = 0;
  {
    std::vector<std::vector<double>> lists = packed_state();
    first_turn = state.resume(report, pointers(lists));
    if (first_turn > 0) {
      field.waves.energy_ry = lists[0];
      field.dipole_energy_ry = lists[1];
      for (std::size_t i = 0; i < complex_state.size(); ++i)
        restore(lists[i + 2], *complex_state[i]);
    }
  }
  state.enter(first_turn);
  if (first_turn == 0 && loop.start_shift_ev != 0.0 && move_screening) p.epsilon = screening(field);
  for (int turn = first_turn; turn < loop.max_iterations; ++turn) {
    auto change_of_density =
        summed_density(field.waves, field.zone, field.n_occupied_of_spin, g, p.kernels());
    for (std::size_t s = 0; s < change_of_density.size(); ++s)
      for (std::size_t i = 0; i < g.size(); ++i) change_of_density[s][i] -= density_before[s][i];
    if (move_screening && turn > 0) {
      for (std::size_t s = 0; s < change_of_density.size(); ++s)
        for (std::size_t i = 0; i < g.size(); ++i)
          field.density.values[s][i] = stored_density[s][i] + change_of_density[s][i];
      p.epsilon = screening(field);
    }
    const PlaneWaveField hartree = hartree_potential(field.density.header, change_of_density);
    SigmaMatrixOptions at_states = matrix;
    at_states.at_states = true;
    const auto sums =
        self_energy_matrix(field, p.epsilon, p.options, at_states, p.context(), nullptr);
    double change = 0.0;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const SigmaMatrixAtK& sum = sums[i];
      std::vector<double> outer;
      for (std::size_t l = 0; l < n; ++l)
        outer.push_back(field.waves.energy(sum.spin, sum.k_index, first + static_cast<int>(l)));
      std::vector<Cplx> h = quasiparticle_potential(sum, outer);
      const std::vector<Cplx> v_h = potential_matrix(
          field, hartree, {sum.k_index, sum.spin, first, first + static_cast<int>(n)}, p.kernels());
      const std::vector<Cplx>& u = rotation[i];
      for (std::size_t a = 0; a < n; ++a)
        for (std::size_t b = 0; b < n; ++b) {
          // ⟨a| E_mf − V_xc |b⟩ = Σ_jk u*_aj (…)_jk u_bk
          Cplx fixed;
          for (std::size_t j = 0; j < n; ++j) {
            fixed += std::conj(u[a * n + j]) * u[b * n + j] *
                     field.reference_energy(sum.spin, sum.k_index, first + static_cast<int>(j));
            for (std::size_t k = 0; k < n; ++k)
              fixed -= std::conj(u[a * n + j]) * vxc_ev[i][j * n + k] / kRydberg_ev * u[b * n + k];
          }
          h[a * n + b] += fixed + v_h[a * n + b];
        }
      const HermitianEigen eigen = hermitian_eigen(h, sum.n);
      for (std::size_t l = 0; l < n; ++l) {
        double& energy = energy_of(field.waves, sum.spin, sum.k_index, first + static_cast<int>(l));
        change = std::max(change, std::abs(eigen.values[l] - energy) * kRydberg_ev);
        energy = eigen.values[l];
      }
      // New states in the present ones, then in the mean field's.
      KPointWaves& waves = field.waves.waves[static_cast<std::size_t>(sum.k_index)];
      auto& c = waves.coefficients[static_cast<std::size_t>(sum.spin)];
      const std::size_t n_pw = waves.g.size(), offset = static_cast<std::size_t>(first) * n_pw;
      std::vector<Cplx> new_c(n * n_pw), new_u(n * n);
      for (std::size_t l = 0; l < n; ++l)
        for (std::size_t m = 0; m < n; ++m) {
          const Cplx weight = eigen.vectors[l * n + m];
          for (std::size_t x = 0; x < n_pw; ++x)
            new_c[l * n_pw + x] += weight * c[offset + m * n_pw + x];
          for (std::size_t j = 0; j < n; ++j) new_u[l * n + j] += weight * u[m * n + j];
        }
      std::copy(new_c.begin(), new_c.end(), c.begin() + static_cast<std::ptrdiff_t>(offset));
      for (std::size_t l = 0; l < n; ++l) {
        double expectation = 0.0;
        for (std::size_t j = 0; j < n; ++j)
          expectation += std::norm(new_u[l * n + j]) *
                         field.reference_energy(sum.spin, sum.k_index, first + static_cast<int>(j));
        element_of(field.dipole_energy_ry, field.waves, sum.spin, sum.k_index,
                   first + static_cast<int>(l)) = expectation;
      }
      rotation[i] = std::move(new_u);
      move_outer_bands(field, p.options, sum.spin, sum.k_index);
    }
    report_turn(p, change, report);
    if (change < loop.tolerance_ev) {
      report->converged = true;
      return;
    }
    if (p.checkpoint.keeps()) {
      std::vector<std::vector<double>> lists = packed_state();
      state.leave(turn, *report, pointers(lists));
    }
    state.enter(turn + 1);
  }
  fail(loop, report->change_ev.back());
}

}  // namespace quasi::gw
