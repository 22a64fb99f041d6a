#include <cmath>

#include "workers/gw/solver/mean_field/problem.hpp"
#include "workers/gw/solver/perturbation/atom_displacement.hpp"
#include "workers/gw/solver/perturbation/coupling_parts.hpp"
#include "workers/gw/solver/perturbation/mode_elements.hpp"

// Shifts of the mean-field energies in second order of the zero-point displacements.
namespace quasi::gw {
namespace {

/// V_mn of all displacements between all bands m and the outer states n of one k, and their
/// energies.
class CoupledStates {
 public:
  CoupledStates(const std::vector<Perturbation>& perturbations, const MeanField& field,
                const SigmaOptions& options, int k_index, GwKernels& kernels)
      : n_p(perturbations.size()),
        n_bands(static_cast<std::size_t>(options.bands)),
        first_(static_cast<std::size_t>(options.band_min - 1)),
        n_outer_(static_cast<std::size_t>(options.band_max) - first_) {
    const Vec3 k = field.waves.k[static_cast<std::size_t>(k_index)];
    const WavesAtPoint states =
        waves_at(field, k, 0, 0, options.bands, sum_box(field, field.waves.header.g));
    const auto block = kernels.hamiltonian().make_couplings();
    coupling_parts(perturbations, k, states, IVec3{}, states, kernels)
        ->of_kets({options.band_min - 1, options.band_max}, *block);
    v_.resize(n_p * n_bands * n_outer_);
    block->read(view<Cplx>(v_, n_p, n_bands, n_outer_));
    for (int n = 0; n < options.bands; ++n) energy_ry.push_back(field.waves.energy(0, k_index, n));
  }
  Cplx v(std::size_t p, std::size_t m, std::size_t n) const {
    return v_[(p * n_bands + m) * n_outer_ + n - first_];
  }

  const std::size_t n_p, n_bands;
  std::vector<double> energy_ry;

 private:
  std::size_t first_, n_outer_;
  std::vector<Cplx> v_;
};

/// Returns the sums T_ab = Re Σ_m V^a_nm V^b_mn/(E_n − E_m), Ry/Bohr² [n_p][n_p]. They are
/// averaged over the states n of one multiplet, the bands [begin, end), and m runs over all bands
/// outside it. The indices a and b count displacements.
std::vector<double> second_order(const CoupledStates& states, std::size_t begin, std::size_t end) {
  std::vector<double> t(states.n_p * states.n_p);
  for (std::size_t n = begin; n < end; ++n)
    for (std::size_t m = 0; m < states.n_bands; ++m) {
      if (m >= begin && m < end) continue;
      const double per =
          1.0 / (states.energy_ry[n] - states.energy_ry[m]) / static_cast<double>(end - begin);
      for (std::size_t a = 0; a < states.n_p; ++a)
        for (std::size_t b = 0; b < states.n_p; ++b)
          t[a * states.n_p + b] += (std::conj(states.v(a, m, n)) * states.v(b, m, n)).real() * per;
    }
  return t;
}

}  // namespace

std::vector<std::vector<ZeroPointShifts>> zero_point_shifts(const ZeroPointModes& modes,
                                                            const EmpiricalCrystal& crystal,
                                                            const MeanField& field,
                                                            const SigmaOptions& options,
                                                            GwKernels& kernels) {
  std::vector<Perturbation> perturbations;
  for (std::size_t atom = 0; atom < field.crystal().atoms.size(); ++atom)
    for (std::size_t axis = 0; axis < 3; ++axis) {
      Vec3 unit{};
      unit[axis] = 1.0;
      perturbations.push_back(
          atom_displacement(crystal, field.crystal(), static_cast<int>(atom), unit));
    }
  const std::size_t n_p = perturbations.size();
  std::vector<std::vector<ZeroPointShifts>> all(modes.n_modes());
  for (const int ik : options.kpoints) {
    const CoupledStates states(perturbations, field, options, ik, kernels);
    for (auto& of_mode : all) of_mode.emplace_back();
    for (const auto& [begin, end] :
         multiplets(field.waves, 0, ik, options.band_min - 1, options.band_max)) {
      const auto t =
          second_order(states, static_cast<std::size_t>(begin), static_cast<std::size_t>(end));
      for (std::size_t m = 0; m < modes.n_modes(); ++m) {
        double fan = 0.0, debye_waller = 0.0;
        for (std::size_t a = 0; a < n_p && !modes.acoustic[m]; ++a)
          for (std::size_t b = 0; b < n_p; ++b) {
            const Cplx u_a = modes.displacement_bohr(m, a / 3, a % 3);
            const auto product = [&](std::size_t other) {
              return (std::conj(u_a) * modes.displacement_bohr(m, other / 3, other % 3)).real();
            };
            fan += product(b) * t[a * n_p + b];
            debye_waller -= product(3 * (a / 3) + b % 3) * t[a * n_p + b];
          }
        ZeroPointShifts& shifts = all[m].back();
        const auto members = static_cast<std::size_t>(end - begin);
        shifts.fan_ev.insert(shifts.fan_ev.end(), members, kRydberg_ev * fan);
        shifts.debye_waller_ev.insert(shifts.debye_waller_ev.end(), members,
                                      kRydberg_ev * debye_waller);
      }
    }
  }
  return all;
}

}  // namespace quasi::gw
