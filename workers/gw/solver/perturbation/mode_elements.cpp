#include "workers/gw/solver/perturbation/mode_elements.hpp"

#include <cmath>
#include <utility>

#include "workers/gw/solver/mean_field/problem.hpp"

namespace quasi::gw {
namespace {

/// Elements below this are those that symmetry forbids, which rounding keeps from 0.
constexpr double kForbidden_ev = 1e-9;

ModeElementsAtK elements_at(const ZeroPointModes& modes, std::size_t mode,
                            const DisplacementElements& displaced, std::size_t k) {
  ModeElementsAtK elements;
  if (modes.acoustic[mode]) return elements;
  for (std::size_t d = 0; d < displaced.displacements.size(); ++d) {
    const ElementsAtK& from = displaced.at[d][k];
    const Displacement& along = displaced.displacements[d];
    const Cplx u_ev_per_ry =
        kRydberg_ev * modes.displacement_bohr(mode, static_cast<std::size_t>(along.atom - 1),
                                              static_cast<std::size_t>(along.direction - 'x'));
    elements.mean_field_ev.resize(from.mean_field.size());
    elements.sigma_ev.resize(from.mean_field.size());
    elements.gw_ev.resize(from.vxc.size());
    elements.long_range_ev.resize(from.long_range.size());
    for (std::size_t i = 0; i < from.long_range.size(); ++i)
      elements.long_range_ev[i] += u_ev_per_ry * from.long_range[i];
    for (std::size_t i = 0; i < from.mean_field.size(); ++i) {
      elements.mean_field_ev[i] += u_ev_per_ry * from.mean_field[i];
      elements.sigma_ev[i] += u_ev_per_ry * from.sigma(i);
      if (!from.vxc.empty()) elements.gw_ev[i] += u_ev_per_ry * from.gw(i);
    }
  }
  return elements;
}

/// Sums over the members of a set of modes and of two multiplets.
struct CouplingSums {
  double mean_field = 0.0, sigma = 0.0, product = 0.0, gw = 0.0;
  int count = 0;

  void add(const ModeElementsAtK& at, const ModeCoupling& of, int band_min, std::size_t n) {
    for (int l = of.bra.first; l <= of.bra.second; ++l)
      for (int m = of.ket.first; m <= of.ket.second; ++m) {
        const std::size_t i =
            static_cast<std::size_t>(l - band_min) * n + static_cast<std::size_t>(m - band_min);
        mean_field += std::norm(at.mean_field_ev[i]);
        sigma += std::norm(at.sigma_ev[i]);
        product += (std::conj(at.mean_field_ev[i]) * at.sigma_ev[i]).real();
        if (!at.gw_ev.empty()) gw += std::norm(at.gw_ev[i]);
        ++count;
      }
  }
};

/// Averages over the set of a coupling. @pre mode, k, bra and ket are set
void average(const DisplacementElements& displaced, const ModeElements& elements,
             ModeCoupling& coupling) {
  CouplingSums sums;
  const auto n = static_cast<std::size_t>(displaced.band_max - displaced.band_min + 1);
  for (std::size_t m = 0; m < elements.modes.n_modes(); ++m)
    if (elements.modes.first_of_set[m] == coupling.mode)
      sums.add(elements.at[m][coupling.k], coupling, displaced.band_min, n);
  coupling.mean_field_ev = std::sqrt(sums.mean_field / sums.count);
  coupling.sigma_ev = std::sqrt(sums.sigma / sums.count);
  const bool has_vxc =
      !elements.at[static_cast<std::size_t>(coupling.mode)][coupling.k].gw_ev.empty();
  if (has_vxc) coupling.gw_ev = std::sqrt(sums.gw / sums.count);
  if (has_vxc && coupling.mean_field_ev > kForbidden_ev)
    coupling.enhancement = *coupling.gw_ev / coupling.mean_field_ev;
  if (coupling.mean_field_ev > kForbidden_ev) coupling.ratio = sums.product / sums.mean_field;
  coupling.potential_ev_per_angstrom =
      coupling.mean_field_ev / (kBohr_angstrom * elements.modes.cell_amplitude_bohr(
                                                     static_cast<std::size_t>(coupling.mode)));
}

}  // namespace

ModeElements mode_elements(ZeroPointModes modes, const DisplacementElements& displaced,
                           const Wavefunctions& waves) {
  ModeElements found{.modes = std::move(modes)};
  for (std::size_t m = 0; m < found.modes.n_modes(); ++m) {
    found.at.emplace_back();
    for (std::size_t k = 0; k < displaced.k_index.size(); ++k)
      found.at[m].push_back(elements_at(found.modes, m, displaced, k));
  }
  for (std::size_t m = 0; m < found.modes.n_modes(); ++m) {
    if (found.modes.acoustic[m] || found.modes.first_of_set[m] != static_cast<int>(m)) continue;
    for (std::size_t k = 0; k < displaced.k_index.size(); ++k) {
      const auto sets_at = [&](int k_index) {
        return multiplets(waves, 0, k_index, displaced.band_min - 1, displaced.band_max);
      };
      const int bra_index =
          displaced.bra_index.empty() ? displaced.k_index[k] : displaced.bra_index[k];
      for (const auto& bra : sets_at(bra_index))
        for (const auto& ket : sets_at(displaced.k_index[k])) {
          found.couplings.push_back({.mode = static_cast<int>(m),
                                     .k = k,
                                     .bra = {bra.first + 1, bra.second},
                                     .ket = {ket.first + 1, ket.second}});
          average(displaced, found, found.couplings.back());
        }
    }
  }
  return found;
}

}  // namespace quasi::gw
