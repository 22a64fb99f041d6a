#include "workers/gw/solver/self_energy/graphical.hpp"

#include <algorithm>
#include <cmath>

#include "workers/gw/physics/interpolation.hpp"

namespace quasi::gw {

const char* name_of(RootStatus status) {
  switch (status) {
    case RootStatus::kUnique:
      return "unique";
    case RootStatus::kMultiple:
      return "multiple";
    case RootStatus::kExtrapolated:
      return "extrapolated";
    case RootStatus::kNone:
      return "none";
  }
  return "";
}

std::vector<Root> graphical_roots(const std::vector<double>& energy_ev,
                                  const std::vector<double>& sigma_ev, double offset_ev) {
  std::vector<Root> roots;
  const auto excess = [&](std::size_t i) { return energy_ev[i] - offset_ev - sigma_ev[i]; };
  for (std::size_t i = 0; i + 1 < energy_ev.size(); ++i) {
    if (excess(i) * excess(i + 1) >= 0.0 && excess(i) != 0.0) continue;
    double low = energy_ev[i], high = excess(i) == 0.0 ? low : energy_ev[i + 1];
    const bool rising = excess(i + 1) > 0.0;
    for (int halving = 0; halving < 60 && low < high; ++halving) {
      const double middle = 0.5 * (low + high);
      const bool above =
          middle - offset_ev - cubic_at<double>(energy_ev, sigma_ev, middle).value > 0.0;
      (above == rising ? high : low) = middle;
    }
    const double energy = 0.5 * (low + high);
    roots.push_back({energy, 1.0 / (1.0 - cubic_at<double>(energy_ev, sigma_ev, energy).slope)});
  }
  return roots;
}

namespace {

/// Finds a root beyond the window by the slope of Σ at the end where |E − offset − Σ| is smaller. A
/// root farther away than the width of the window does not count.
std::optional<Root> extrapolated_root(const std::vector<double>& energy,
                                      const std::vector<double>& sigma, double offset) {
  const std::size_t last = energy.size() - 1;
  const auto excess = [&](std::size_t i) { return energy[i] - offset - sigma[i]; };
  const std::size_t end = std::abs(excess(0)) < std::abs(excess(last)) ? 0 : last;
  const double slope = 1.0 - cubic_at<double>(energy, sigma, energy[end]).slope;
  const Root root{energy[end] - excess(end) / slope, 1.0 / slope};
  const bool outside = end == 0 ? root.energy_ev < energy[0] : root.energy_ev > energy[last];
  if (!outside || std::abs(root.energy_ev - energy[end]) > energy[last] - energy[0])
    return std::nullopt;
  return root;
}

/// Averages Σ(E) over the bands [begin, end) of one multiplet.
Spectrum sigma_of_multiplet(const MeanField& field, const SelfEnergyAtK& at,
                            const SpectrumOptions& options, int begin, int end) {
  const int first = options.band_min - 1;
  const double share = kRydberg_ev / (end - begin);
  Spectrum s{.k = field.waves.k[static_cast<std::size_t>(at.k_index)],
             .k_index = at.k_index,
             .spin = at.spin + 1,
             .band_begin = begin + 1,
             .band_end = end};
  double evaluated_ev = 0.0;
  for (int n = begin; n < end; ++n)
    evaluated_ev += share * field.waves.energy(at.spin, at.k_index, n);
  const std::vector<double> offsets =
      options.offsets_ry.empty() ? options.grid.offsets_ry() : options.offsets_ry;
  for (std::size_t e = 0; e < offsets.size(); ++e) {
    const std::size_t row = options.first_offset + e;
    Cplx value;
    for (int n = begin; n < end; ++n) {
      const auto l = static_cast<std::size_t>(n - first);
      value += share * (at.x_ry[l] + at.sx_ry[row][l] + at.ch_ry[row][l]);
      if (options.remainder) value += 0.5 * share * (at.ch_exact_ry[l] - at.ch_static_ry[l]);
    }
    s.energy_ev.push_back(evaluated_ev + offsets[e] * kRydberg_ev);
    s.sigma_ev.push_back(value);
  }
  if (options.energy_ev.empty()) return s;
  std::vector<Cplx> sigma_ev;
  for (const double energy : options.energy_ev)
    sigma_ev.push_back(cubic_at(s.energy_ev, s.sigma_ev, energy).value);
  s.energy_ev = options.energy_ev;
  s.sigma_ev = std::move(sigma_ev);
  return s;
}

/// Calculates A(E) of a spectrum and its trapezoidal sum over the window.
void add_spectral_function(double mean_field_ev, double vxc_ev, const SpectrumGrid& grid,
                           Spectrum& s) {
  for (std::size_t e = 0; e < s.energy_ev.size(); ++e) {
    const double width = std::abs(s.sigma_ev[e].imag()) + grid.broadening_ev;
    const double away = s.energy_ev[e] - mean_field_ev + vxc_ev - s.sigma_ev[e].real();
    s.spectral_per_ev.push_back(width / (kPi * (away * away + width * width)));
    s.norm += s.spectral_per_ev.back() * grid.step_ev *
              (e == 0 || e + 1 == s.energy_ev.size() ? 0.5 : 1.0);
  }
}

/// Finds the roots of a spectrum and chooses the best one.
/// @param offset_ev  E_mf − V_xc
void add_roots(double offset_ev, Spectrum& s) {
  std::vector<double> real_part;
  for (const Cplx& value : s.sigma_ev) real_part.push_back(value.real());
  s.roots = graphical_roots(s.energy_ev, real_part, offset_ev);
  s.status = s.roots.size() > 1    ? RootStatus::kMultiple
             : s.roots.size() == 1 ? RootStatus::kUnique
                                   : RootStatus::kNone;
  if (s.roots.empty())
    if (const auto root = extrapolated_root(s.energy_ev, real_part, offset_ev)) {
      s.roots.push_back(*root);
      s.status = RootStatus::kExtrapolated;
    }
  // A crossing with falling E − Σ has Z < 0 and is no quasiparticle. Z > 1 belongs to a Σ that
  // rises between poles.
  for (const Root& root : s.roots)
    if (root.z > 0.0 && root.z <= 1.0 && (!s.best || root.z > s.best->z)) s.best = root;
}

}  // namespace

std::vector<Spectrum> spectra(const MeanField& field, const std::vector<SelfEnergyAtK>& sigma,
                              const std::vector<std::vector<double>>& vxc_ev,
                              const SpectrumOptions& options) {
  std::vector<Spectrum> list;
  const int first = options.band_min - 1;
  for (std::size_t i = 0; i < sigma.size(); ++i) {
    const SelfEnergyAtK& at = sigma[i];
    for (const auto& [begin, end] :
         multiplets(field.waves, at.spin, at.k_index, first, options.band_max)) {
      Spectrum s = sigma_of_multiplet(field, at, options, begin, end);
      if (!vxc_ev.empty()) {
        const double share = kRydberg_ev / (end - begin);
        double mean_field_ev = 0.0, vxc = 0.0;
        for (int n = begin; n < end; ++n) {
          mean_field_ev += share * field.reference_energy(at.spin, at.k_index, n);
          vxc += vxc_ev[i][static_cast<std::size_t>(n - first)] / (end - begin);
        }
        add_spectral_function(mean_field_ev, vxc, options.grid, s);
        add_roots(mean_field_ev - vxc, s);
      }
      list.push_back(std::move(s));
    }
  }
  return list;
}

void use_graphical_solution(const std::vector<Spectrum>& spectra,
                            std::vector<Quasiparticle>& list) {
  for (const Spectrum& s : spectra)
    for (Quasiparticle& qp : list) {
      if (!s.best || qp.k_index != s.k_index || qp.spin != s.spin || qp.band < s.band_begin ||
          qp.band > s.band_end)
        continue;
      qp.qp1_ev = s.best->energy_ev;
      qp.z = s.best->z;
    }
}

}  // namespace quasi::gw
