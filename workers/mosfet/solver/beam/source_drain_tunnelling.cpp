#include "workers/mosfet/solver/beam/source_drain_tunnelling.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "workers/mosfet/physics/beam/face_energies.hpp"
#include "workers/mosfet/physics/working_units.hpp"

namespace quasi::mosfet {
namespace {

// Barriers with e^{−2·action} below 1e-17 of the incident current are left out.
constexpr double kLargestAction = 20.0;

// Returns ∫√q² dx / dx over an interval with q² linear between its ends, where q² > 0.
double mean_root(double left, double right) {
  const double length = std::max(left, right);
  if (!(length > 0.0)) return 0.0;
  if (std::min(left, right) < 0.0)  // a turning point inside
    return 2.0 / 3.0 * std::sqrt(length) * length / std::fabs(left - right);
  const double a = std::sqrt(left), b = std::sqrt(right);
  return 2.0 / 3.0 * (left + a * b + right) / (a + b);
}

/// One subband with its barrier.
struct Level {
  const double* edge_ev;
  int state;
  double mx_m0;
  double top_ev;  ///< highest edge at a face, which closes the cells
};

// Adds what tunnels within cell (k, j), per C_ν c_ν of one valley.
void add_cell(const BeamGrid& grid, const Level& level, const double* mean, int k, int j,
              TunnelCurrent* sum) {
  constexpr std::array<double, 2> kAt{0.2113248654051871, 0.7886751345948129};  // Gauss, two points
  const double low = grid.h_low_ev(k), centre = grid.centre_ev(k);
  for (const double at : kAt) {
    const double kappa = (j + at) * grid.dkappa;
    const double closed_ev =
        std::min(grid.h_low_ev(k + 1), level.top_ev + beam_least_energy(kappa, grid.alpha_per_ev));
    for (int point = 0; point < 8 && closed_ev > low; ++point) {
      const GaussPoint gauss = gauss_point(point);
      const double h = low + (closed_ev - low) * gauss.at;
      const ForbiddenRegion region = forbidden_region(grid, level.edge_ev, level.mx_m0, h, kappa);
      if (region.source_node < 0 || region.drain_node < 0 || region.action > kLargestAction)
        continue;
      const auto g_at = [&](int node) {
        return mean[(static_cast<std::size_t>(level.state) * grid.nx + node) * grid.n_h + k];
      };
      const double flux = 0.5 * grid.dkappa * gauss.weight * (closed_ev - low) *
                          grid.shape.at(h, centre) * std::exp(-2.0 * region.action) *
                          (g_at(region.source_node) - g_at(region.drain_node));
      sum->electrons += flux;
      sum->energy += flux * h;
    }
  }
}

}  // namespace

ForbiddenRegion forbidden_region(const BeamGrid& grid, const double* edge_ev, double mx_m0,
                                 double h_ev, double kappa) {
  const auto root2 = [&](int i) {
    return kappa * kappa - beam_gamma(h_ev - edge_ev[i], grid.alpha_per_ev);
  };
  const int top = static_cast<int>(std::max_element(edge_ev, edge_ev + grid.nx) - edge_ev);
  ForbiddenRegion region;
  double sum = 0.0;
  for (int i = top - 1; i >= 0 && region.source_node < 0; --i) {
    sum += mean_root(root2(i), root2(i + 1));
    if (root2(i) <= 0.0) region.source_node = i;
  }
  for (int i = top + 1; i < grid.nx && region.drain_node < 0; ++i) {
    sum += mean_root(root2(i - 1), root2(i));
    if (root2(i) <= 0.0) region.drain_node = i;
  }
  region.action = sum * grid.dx_nm / std::sqrt(kHbar2Over2m0_ev_nm2 / mx_m0);
  return region;
}

TunnelCurrent source_drain_tunnelling(const BeamGrid& grid, const BeamLevels& levels,
                                      const std::vector<double>& mean) {
  const BeamFactors factors = make_beam_factors(levels);
  TunnelCurrent total;
  std::vector<double> faces(static_cast<std::size_t>(grid.nx) + 1);
  for (int state = 0; state < levels.n_states(); ++state) {
    face_energies(levels.edge_of(state), grid.nx, faces.data());
    const Level level{levels.edge_of(state), state, levels.valley_of(state).mx_m0,
                      *std::max_element(faces.begin(), faces.end())};
    // Every cell of H has a sum of its own, so that the bits do not depend on the threads.
    std::vector<TunnelCurrent> rows(static_cast<std::size_t>(grid.n_h));
#pragma omp parallel for schedule(dynamic)
    for (int k = 0; k < grid.n_h; ++k)
      for (int j = 0; j < grid.n_kappa; ++j) add_cell(grid, level, mean.data(), k, j, &rows[k]);
    const double prefactor = 2.0 * factors.density[state] * factors.speed[state];
    for (int k = 0; k < grid.n_h; ++k) {
      total.electrons += prefactor * grid.boltzmann(k) * rows[k].electrons;
      total.energy += prefactor * grid.boltzmann(k) * rows[k].energy;
    }
  }
  return total;
}

}  // namespace quasi::mosfet
