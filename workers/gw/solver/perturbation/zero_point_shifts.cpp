#include <cmath>
#include <optional>

#include "workers/gw/solver/mean_field/problem.hpp"
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
  const Cplx& v(std::size_t p, std::size_t m, std::size_t n) const {
    return v_[(p * n_bands + m) * n_outer_ + n - first_];
  }
  Cplx& v(std::size_t p, std::size_t m, std::size_t n) {
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

/// Adds the two terms of one mode, averaged over a multiplet, to lists with its members.
/// @param t  from second_order()
void append_shifts(const ZeroPointModes& modes, std::size_t mode, const std::vector<double>& t,
                   std::size_t members, std::vector<double>& fan_ev,
                   std::vector<double>& debye_waller_ev) {
  const std::size_t n_p = modes.n_modes();
  double fan = 0.0, debye_waller = 0.0;
  for (std::size_t a = 0; a < n_p && !modes.acoustic[mode]; ++a)
    for (std::size_t b = 0; b < n_p; ++b) {
      const Cplx u_a = modes.displacement_bohr(mode, a / 3, a % 3);
      const auto product = [&](std::size_t other) {
        return (std::conj(u_a) * modes.displacement_bohr(mode, other / 3, other % 3)).real();
      };
      fan += product(b) * t[a * n_p + b];
      debye_waller -= product(3 * (a / 3) + b % 3) * t[a * n_p + b];
    }
  fan_ev.insert(fan_ev.end(), members, kRydberg_ev * fan);
  debye_waller_ev.insert(debye_waller_ev.end(), members, kRydberg_ev * debye_waller);
}

/// Replaces g between the outer states by g^GW. @param k  position in the list of k-points
void take_gw(const DisplacementElements& displaced, std::size_t k, CoupledStates& states) {
  const auto first = static_cast<std::size_t>(displaced.band_min - 1),
             n = static_cast<std::size_t>(displaced.band_max) - first;
  for (std::size_t p = 0; p < states.n_p; ++p)
    for (std::size_t l = 0; l < n; ++l)
      for (std::size_t m = 0; m < n; ++m)
        states.v(p, first + l, first + m) = displaced.at[p][k].gw(l * n + m);
}

}  // namespace

std::vector<std::vector<ZeroPointShifts>> zero_point_shifts(
    const ZeroPointModes& modes, const std::vector<Perturbation>& displacements,
    const MeanField& field, const SigmaOptions& options, const DisplacementElements& displaced,
    GwKernels& kernels) {
  std::vector<std::vector<ZeroPointShifts>> all(modes.n_modes());
  for (std::size_t k = 0; k < options.kpoints.size(); ++k) {
    const int ik = options.kpoints[k];
    const CoupledStates states(displacements, field, options, ik, kernels);
    std::optional<CoupledStates> with_gw;
    if (!displaced.at.front()[k].vxc.empty()) take_gw(displaced, k, with_gw.emplace(states));
    for (auto& of_mode : all) of_mode.emplace_back();
    for (const auto& [begin, end] :
         multiplets(field.waves, 0, ik, options.band_min - 1, options.band_max)) {
      const auto first = static_cast<std::size_t>(begin), last = static_cast<std::size_t>(end);
      const auto t = second_order(states, first, last);
      for (std::size_t m = 0; m < modes.n_modes(); ++m)
        append_shifts(modes, m, t, last - first, all[m].back().fan_ev,
                      all[m].back().debye_waller_ev);
      if (!with_gw) continue;
      const auto t_gw = second_order(*with_gw, first, last);
      for (std::size_t m = 0; m < modes.n_modes(); ++m)
        append_shifts(modes, m, t_gw, last - first, all[m].back().fan_gw_ev,
                      all[m].back().debye_waller_gw_ev);
    }
  }
  return all;
}

}  // namespace quasi::gw
