#include <algorithm>
#include <cmath>
#include <span>

#include "workers/backend/error.hpp"
#include "workers/gw/solver/mean_field/density.hpp"
#include "workers/gw/solver/self_energy/loops/loop_steps.hpp"

namespace quasi::gw {
namespace {

/// Copies complex numbers to real ones; restore() copies them back.
std::vector<double> flat(const std::vector<Cplx>& values) {
  const auto* data = reinterpret_cast<const double*>(values.data());
  return {data, data + 2 * values.size()};
}
void restore(const std::vector<double>& from, std::vector<Cplx>& to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = {from[2 * i], from[2 * i + 1]};
}

/// Adds weight · x to y. Explicit fused operations fix the rounding. GCC 12 forms such operations
/// in complex products by itself, even with -ffp-contract=off, and differently in every
/// surrounding.
void add_product(Cplx weight, std::span<const Cplx> x, std::span<Cplx> y) {
  for (std::size_t i = 0; i < x.size(); ++i)
    y[i] += Cplx(std::fma(weight.real(), x[i].real(), -(weight.imag() * x[i].imag())),
                 std::fma(weight.real(), x[i].imag(), weight.imag() * x[i].real()));
}

/// Loop over the states of one mean field (QSGW, docs/theory/gw.md 8). The present states are the
/// mean field's states, rotated among the outer bands of each k and spin.
class StateLoop {
 public:
  StateLoop(const OuterLoopProblem& problem, const OuterLoopOptions& loop,
            const SigmaMatrixOptions& matrix, const std::vector<std::vector<Cplx>>& vxc_ev,
            const Screening& screening)
      : p_(problem),
        field_(problem.field),
        loop_(loop),
        matrix_(matrix),
        vxc_ev_(vxc_ev),
        screening_(screening),
        kept_(problem),
        first_(problem.options.band_min - 1),
        n_(static_cast<std::size_t>(problem.options.band_max - problem.options.band_min + 1)),
        rotation_(vxc_ev.size(), std::vector<Cplx>(n_ * n_)) {
    matrix_.at_states = true;
    start_from_mean_field(field_, loop.start_shift_ev / kRydberg_ev);
    stored_density_ = field_.density.values;
    density_before_ = present_density();
    for (auto& u : rotation_)
      for (std::size_t i = 0; i < n_; ++i) u[i * n_ + i] = 1.0;
  }

  void iterate(OuterLoopReport* report) {
    const int first_turn = resume(report);
    kept_.enter(first_turn);
    if (first_turn == 0 && loop_.start_shift_ev != 0.0 && moves_screening())
      p_.epsilon = screening_(field_);
    for (int turn = first_turn; turn < loop_.max_iterations; ++turn) {
      const double change = improve_states(turn);
      report_turn(p_, change, report);
      if (change < loop_.tolerance_ev) {
        report->converged = true;
        return;
      }
      leave(turn, *report);
      kept_.enter(turn + 1);
    }
    give_up(loop_, report->change_ev.back());
  }

 private:
  using Density = std::vector<std::vector<Cplx>>;  ///< ρ(G), [spin][g]

  bool moves_screening() const { return loop_.kind == OuterLoop::kQsGw; }

  Density present_density() const {
    return summed_density(field_.waves, field_.zone, field_.n_occupied_of_spin,
                          field_.density.header.g, p_.kernels());
  }
  Density change_of_density() const {
    Density change = present_density();
    for (std::size_t s = 0; s < change.size(); ++s)
      for (std::size_t i = 0; i < change[s].size(); ++i) change[s][i] -= density_before_[s][i];
    return change;
  }
  /// Puts the density of the present states into the field and calculates their ε⁻¹.
  void update_screening(const Density& change) {
    for (std::size_t s = 0; s < change.size(); ++s)
      for (std::size_t i = 0; i < change[s].size(); ++i)
        field_.density.values[s][i] = stored_density_[s][i] + change[s][i];
    p_.epsilon = screening_(field_);
  }

  /// Replaces the states and energies by the eigenstates of H with Σ of the present ones.
  /// @return the largest change of an energy, eV
  double improve_states(int turn) {
    const Density change_of_rho = change_of_density();
    if (moves_screening() && turn > 0) update_screening(change_of_rho);
    const PlaneWaveField hartree = hartree_potential(field_.density.header, change_of_rho);
    const auto sums =
        self_energy_matrix(field_, p_.epsilon, p_.options, matrix_, p_.context(), nullptr);
    double change = 0.0;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const SigmaMatrixAtK& sum = sums[i];
      const HermitianEigen eigen = hermitian_eigen(hamiltonian(sum, i, hartree), sum.n);
      change = std::max(change, take_energies(sum, eigen.values));
      rotate(eigen.vectors, outer_coefficients(sum));
      rotate(eigen.vectors, rotation_[i]);
      update_dipole_energies(sum, rotation_[i]);
      move_outer_bands(field_, p_.options, sum.spin, sum.k_index);
    }
    return change;
  }

  /// H = E_mf − V_xc + ΔV_H + X + ½H[Σ(E_l) + Σ(E_m)] between the present states, Ry.
  std::vector<Cplx> hamiltonian(const SigmaMatrixAtK& sum, std::size_t i,
                                const PlaneWaveField& hartree) const {
    std::vector<double> outer;
    for (std::size_t l = 0; l < n_; ++l)
      outer.push_back(field_.waves.energy(sum.spin, sum.k_index, band(l)));
    std::vector<Cplx> h = quasiparticle_potential(sum, outer);
    const std::vector<Cplx> v_h =
        potential_matrix(field_, hartree, {sum.k_index, sum.spin, first_, band(n_)}, p_.kernels());
    const std::vector<Cplx>& u = rotation_[i];
    for (std::size_t a = 0; a < n_; ++a)
      for (std::size_t b = 0; b < n_; ++b) {
        // ⟨a| E_mf − V_xc |b⟩ = Σ_jk u*_aj (…)_jk u_bk
        Cplx fixed;
        for (std::size_t j = 0; j < n_; ++j) {
          fixed += std::conj(u[a * n_ + j]) * u[b * n_ + j] *
                   field_.reference_energy(sum.spin, sum.k_index, band(j));
          for (std::size_t k = 0; k < n_; ++k)
            fixed -=
                std::conj(u[a * n_ + j]) * vxc_ev_[i][j * n_ + k] / kRydberg_ev * u[b * n_ + k];
        }
        h[a * n_ + b] += fixed + v_h[a * n_ + b];
      }
    return h;
  }
  /// @return the largest change, eV
  double take_energies(const SigmaMatrixAtK& sum, const std::vector<double>& energies_ry) {
    double change = 0.0;
    for (std::size_t l = 0; l < n_; ++l) {
      double& energy = energy_of(field_.waves, sum.spin, sum.k_index, band(l));
      change = std::max(change, std::abs(energies_ry[l] - energy) * kRydberg_ev);
      energy = energies_ry[l];
    }
    return change;
  }
  /// Replaces rows of the present states by those of the new ones.
  /// @param vectors  the new states (rows) in the present ones
  /// @param rows     [n][width]: coefficients of plane waves, or of the mean field's states
  void rotate(const std::vector<Cplx>& vectors, std::span<Cplx> rows) const {
    const std::size_t width = rows.size() / n_;
    std::vector<Cplx> rotated(rows.size());
    for (std::size_t l = 0; l < n_; ++l)
      for (std::size_t m = 0; m < n_; ++m)
        add_product(vectors[l * n_ + m], rows.subspan(m * width, width),
                    std::span(rotated).subspan(l * width, width));
    std::copy(rotated.begin(), rotated.end(), rows.begin());
  }
  /// Coefficients of the outer states in plane waves, [n][n_spinor · plane waves].
  std::span<Cplx> outer_coefficients(const SigmaMatrixAtK& sum) {
    KPointWaves& waves = field_.waves.waves[static_cast<std::size_t>(sum.k_index)];
    const std::size_t row = waves.g.size() * static_cast<std::size_t>(field_.waves.header.n_spinor);
    return std::span(waves.coefficients[static_cast<std::size_t>(sum.spin)])
        .subspan(static_cast<std::size_t>(first_) * row, n_ * row);
  }
  /// Dipole matrix elements at q → 0 keep the mean field's H: E_l = ⟨l| H_mf |l⟩.
  void update_dipole_energies(const SigmaMatrixAtK& sum, const std::vector<Cplx>& u) {
    for (std::size_t l = 0; l < n_; ++l) {
      double expectation = 0.0;
      for (std::size_t j = 0; j < n_; ++j)
        expectation +=
            std::norm(u[l * n_ + j]) * field_.reference_energy(sum.spin, sum.k_index, band(j));
      element_of(field_.dipole_energy_ry, field_.waves, sum.spin, sum.k_index, band(l)) =
          expectation;
    }
  }
  /// Band of the outer state l, counted from 0.
  int band(std::size_t l) const { return first_ + static_cast<int>(l); }

  /// The complex arrays that change: rotations and coefficients. The coefficients are kept too, so
  /// that a resumed loop has the same bits.
  std::vector<std::vector<Cplx>*> complex_arrays() {
    std::vector<std::vector<Cplx>*> arrays;
    for (auto& u : rotation_) arrays.push_back(&u);
    for (KPointWaves& waves : field_.waves.waves)
      for (auto& c : waves.coefficients) arrays.push_back(&c.in_memory());
    return arrays;
  }
  /// Copies of all arrays that change, as real numbers.
  std::vector<std::vector<double>> packed() {
    std::vector<std::vector<double>> lists{field_.waves.energy_ry, field_.dipole_energy_ry};
    for (const std::vector<Cplx>* array : complex_arrays()) lists.push_back(flat(*array));
    return lists;
  }
  static std::vector<std::vector<double>*> pointers(std::vector<std::vector<double>>& lists) {
    std::vector<std::vector<double>*> to;
    for (auto& list : lists) to.push_back(&list);
    return to;
  }
  /// Takes up the loop where the checkpoint has it.
  /// @return the turn to begin with
  int resume(OuterLoopReport* report) {
    std::vector<std::vector<double>> lists = packed();
    const int turn = kept_.resume(report, pointers(lists));
    if (turn == 0) return turn;
    field_.waves.energy_ry = lists[0];
    field_.dipole_energy_ry = lists[1];
    const std::vector<std::vector<Cplx>*> arrays = complex_arrays();
    for (std::size_t i = 0; i < arrays.size(); ++i) restore(lists[i + 2], *arrays[i]);
    return turn;
  }
  void leave(int turn, const OuterLoopReport& report) {
    if (!p_.checkpoint.keeps()) return;
    std::vector<std::vector<double>> lists = packed();
    kept_.leave(turn, report, pointers(lists));
  }

  const OuterLoopProblem& p_;
  MeanField& field_;
  const OuterLoopOptions& loop_;
  SigmaMatrixOptions matrix_;
  const std::vector<std::vector<Cplx>>& vxc_ev_;
  const Screening& screening_;
  LoopState kept_;
  int first_;      ///< the lowest outer band, counted from 0
  std::size_t n_;  ///< number of outer bands
  /// [k and spin]: the present states i (rows) in the mean field's states j, [i][j]
  std::vector<std::vector<Cplx>> rotation_;
  Density stored_density_;  ///< of the mean field's file
  Density density_before_;  ///< of the mean field's states
};

}  // namespace

void iterate_states(const OuterLoopProblem& p, const OuterLoopOptions& loop,
                    const SigmaMatrixOptions& matrix, const std::vector<std::vector<Cplx>>& vxc_ev,
                    const Screening& screening, OuterLoopReport* report) {
  require_every_k_and_vxc(p, !vxc_ev.empty());
  if (loop.kind == OuterLoop::kQsGw && !p.field.by_velocity)
    throw InvalidInput(
        "sigma.outer_loop = \"qsgw\" makes W of new states, and the states of WFNq cannot follow "
        "them: set meanfield.long_wave = \"kp\"");
  StateLoop(p, loop, matrix, vxc_ev, screening).iterate(report);
}

}  // namespace quasi::gw
