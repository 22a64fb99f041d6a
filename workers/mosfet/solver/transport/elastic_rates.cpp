#include "workers/mosfet/solver/transport/elastic_rates.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "workers/mosfet/physics/impurity.hpp"
#include "workers/mosfet/physics/statistics.hpp"
#include "workers/mosfet/solver/equilibrium/equilibrium.hpp"

namespace quasi::mosfet {

std::vector<double> roughness_spectrum(const Roughness& roughness, const ValleyPair& valley,
                                       double alpha_per_ev, const std::vector<double>& w_ev) {
  // The mean converges geometrically; 24 points give 1e-4 at Λ = 1.5 nm.
  constexpr int kAngles = 24;
  const double long_m0 = valley.long_axis_m0 > 0.0 ? valley.long_axis_m0 : valley.mx_m0,
               short_m0 = valley.short_axis_m0 > 0.0 ? valley.short_axis_m0 : valley.my_m0;
  const std::size_t n = w_ev.size();
  std::vector<double> kx(n * kAngles), ky(kx.size());
  for (std::size_t l = 0; l < n; ++l) {
    const double kinetic = w_ev[l] * (1.0 + alpha_per_ev * w_ev[l]) / kHbar2Over2m0_ev_nm2;
    for (int m = 0; m < kAngles; ++m) {
      const double phi = (m + 0.5) * 2.0 * units::kPi / kAngles;
      kx[l * kAngles + m] = std::sqrt(kinetic * long_m0) * std::cos(phi);
      ky[l * kAngles + m] = std::sqrt(kinetic * short_m0) * std::sin(phi);
    }
  }
  std::vector<double> spectrum(n * n);
#pragma omp parallel for schedule(dynamic)
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = 0; b <= a; ++b) {
      double sum = 0.0;
      for (int m = 0; m < kAngles / 2; ++m)  // φ → φ+π changes nothing
        for (int other = 0; other < kAngles; ++other) {
          const double x = kx[a * kAngles + m] - kx[b * kAngles + other];
          const double y = ky[a * kAngles + m] - ky[b * kAngles + other];
          sum += roughness_power(roughness, x * x + y * y) *
                 (1.0 - std::cos((m - other) * 2.0 * units::kPi / kAngles));
        }
      sum *= 2.0 / (kAngles * kAngles);
      spectrum[a * n + b] = sum;
      spectrum[b * n + a] = sum;
    }
  return spectrum;
}

double Impurities::rate_fs(int valley, int column, double w_ev) const {
  const auto i = static_cast<std::size_t>(column), v = static_cast<std::size_t>(valley);
  if (!(donors_nm3[i] > 0.0 && w_ev > 0.0)) return 0.0;
  const double born =
      brooks_herring_rate(w_ev, donors_nm3[i], eps_r, mass_m0[v], screening2_nm2[i]);
  if (partial_waves.empty()) return born;
  return born * partial_waves[v * donors_nm3.size() + i]->at(w_ev) *
         electron_exchange_factor(donors_nm3[i]);
}

namespace {

// Returns ∂n/∂E_F of a film with the levels of the contact column that holds `sheet_nm2` electrons,
// nm⁻² eV⁻¹, in Fermi statistics. Newton's iteration acts on ln n, which is concave in E_F.
double fermi_slope(const DeviceModel& model, const Structure& s, const Equilibrium& contact,
                   double sheet_nm2) {
  const Structure column = column_structure(s, 0);
  double fermi_ev = 0.0;
  SheetDensity sum{0.0, 0.0};
  for (int step = 0; step < 100; ++step) {
    sum = {0.0, 0.0};
    for (int v = 0; v < s.n_valleys(); ++v)
      for (int p = 0; p < s.subbands; ++p) {
        const ValleyPair& valley = s.valleys[static_cast<std::size_t>(v)];
        const SheetDensity one =
            sheet_fermi({valley.mx_m0, valley.my_m0, model.material.alpha_per_ev}, model.kt_ev(),
                        fermi_ev - contact.energy(column, v, p, 0));
        sum.density_nm2 += 2.0 * one.density_nm2;
        sum.slope_nm2_ev += 2.0 * one.slope_nm2_ev;
      }
    const double change =
        std::log(sheet_nm2 / sum.density_nm2) * sum.density_nm2 / sum.slope_nm2_ev;
    fermi_ev += std::clamp(change, -1.0, 1.0);
    if (std::fabs(change) < 1e-12) break;
  }
  return sum.slope_nm2_ev;
}

// Adds the corrections to Born's approximation, one table for each mass and screening length.
void add_partial_waves(Impurities* impurities) {
  // Longer potentials differ from Born's approximation like this one.
  constexpr double kLongest_nm = 20.0;
  std::map<std::pair<double, double>, std::shared_ptr<const PartialWaveTable>> known;
  for (const double mass_m0 : impurities->mass_m0)
    for (const double screening2 : impurities->screening2_nm2) {
      const double length_nm = std::min(kLongest_nm, 1.0 / std::sqrt(screening2));
      auto& table = known[{mass_m0, length_nm}];
      if (!table)
        table = std::make_shared<const PartialWaveTable>(
            donor_potential(mass_m0, impurities->eps_r, length_nm), mass_m0);
      impurities->partial_waves.push_back(table);
    }
}

}  // namespace

Impurities make_impurities(const DeviceModel& model, const Structure& s) {
  const Equilibrium contact = solve_contact(model, s, 0);
  const double film_nm = (s.silicon_last - s.silicon_first) * s.dz_nm;
  const bool waves = model.scattering.impurity_model == ImpurityModel::kPartialWaves;
  Impurities impurities{.eps_r = model.material.eps_si};
  for (const ValleyPair& valley : s.valleys)
    impurities.mass_m0.push_back(waves ? std::cbrt(valley.mx_m0 * valley.my_m0 * valley.mz_m0)
                                       : std::sqrt(valley.mx_m0 * valley.my_m0));
  for (int i = 0; i < s.nx; ++i) {
    const double donors =
        s.doping_nm3[static_cast<std::size_t>(i) * s.nz + (s.silicon_first + s.silicon_last) / 2];
    impurities.donors_nm3.push_back(donors);
    double screening2 = donors > 0.0
                            ? kChargeOverEpsilon0_v_nm / model.material.eps_si *
                                  fermi_slope(model, s, contact, donors * film_nm) / film_nm
                            : 0.0;
    if (waves && donors > 0.0)
      screening2 = std::min(screening2, std::pow(multi_ion_length_nm(donors), -2.0));
    impurities.screening2_nm2.push_back(screening2);
  }
  if (waves) add_partial_waves(&impurities);
  return impurities;
}

}  // namespace quasi::mosfet
