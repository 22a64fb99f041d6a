#include "workers/mosfet/kernels/beam/beam_transport.hpp"

#include <algorithm>
#include <cmath>

#include "workers/mosfet/kernels/beam/gmres.hpp"

namespace quasi::mosfet {

BeamInflow make_beam_inflow(const BeamGrid& grid, double drain_fermi_ev) {
  return make_beam_inflow(grid, grid.shape.fermi_ev, drain_fermi_ev);
}

BeamInflow make_beam_inflow(const BeamGrid& grid, double source_fermi_ev, double drain_fermi_ev) {
  const BeamShape& shape = grid.shape;
  const auto g_at = [&](int k, double fermi_ev) {
    const double distance_kt = (fermi_ev - shape.fermi_ev) / shape.kt_ev;
    if (!shape.fermi) return std::exp(distance_kt);
    return fermi_function((fermi_ev - grid.centre_ev(k)) / shape.kt_ev) / grid.boltzmann(k);
  };
  BeamInflow inflow;
  for (int k = 0; k < grid.n_h; ++k) {
    inflow.source.push_back(g_at(k, source_fermi_ev));
    inflow.drain.push_back(g_at(k, drain_fermi_ev));
  }
  return inflow;
}

std::vector<double> beam_electron_weights(const BeamGrid& grid, const BeamInflow& inflow,
                                          const std::vector<double>& density_factor,
                                          const std::vector<double>& states,
                                          const std::vector<double>& unscattered) {
  std::vector<double> weight(unscattered.size());
  for (std::size_t at = 0; at < weight.size(); ++at) {
    const std::size_t k = at % grid.n_h, state = at / grid.n_h / grid.nx;
    const double least = std::min(inflow.source[k], inflow.drain[k]);
    const double full = density_factor[state] * states[at] * grid.boltzmann(static_cast<int>(k));
    weight[at] = std::sqrt(full / std::max(unscattered[at], least));
  }
  return weight;
}

BeamSolution solve_beam(const BeamOperator& problem, const BeamScattering& scattering,
                        const BeamGoal& goal, const std::vector<double>& start) {
  const std::vector<double>& source = scattering.source();
  BeamSolution solution;
  if (!scattering.scatters()) {
    solution.g = problem.solve_lines({}, true);
    solution.mean = scattering.mean(solution.g);
    solution.sweeps = 1;
    solution.converged = true;
    return solution;
  }
  const std::vector<double> rhs = problem.line_mean(source, true);
  std::vector<double> mean = start.empty() ? rhs : start;
  HostVectors vectors;
  if (goal.norm == BeamNorm::kElectrons)
    vectors.weight =
        beam_electron_weights(problem.geometry().grid, problem.inflow(),
                              problem.geometry().density_factor, scattering.states(), rhs);
  const auto apply = [&](const std::vector<double>& x) {
    std::vector<double> out = problem.line_mean(scattering.gain(x), false);
    for (std::size_t at = 0; at < out.size(); ++at) out[at] = x[at] - out[at];
    return out;
  };
  const GmresReport report = gmres(vectors, apply, rhs, goal.tolerance, goal.max_sweeps, &mean);
  std::vector<double> feed = scattering.gain(mean);
  if (!source.empty()) vectors.add(1.0, source, &feed);
  solution.g = problem.solve_lines(feed, true);
  solution.mean = scattering.mean(solution.g);
  solution.sweeps = report.products + 2;
  solution.residual = report.residual;
  solution.converged = report.converged;
  return solution;
}

std::vector<double> beam_sheet_density(const BeamGeometry& geometry, const std::vector<double>& g) {
  const BeamGrid& grid = geometry.grid;
  const std::size_t branch = g.size() / 2;
  std::vector<double> sheet(static_cast<std::size_t>(geometry.n_states) * grid.nx);
  for (std::size_t column = 0; column < sheet.size(); ++column)
    for (int k = 0; k < grid.n_h; ++k) {
      double sum = 0.0;
      for (int j = 0; j < grid.n_kappa; ++j) {
        const std::size_t at = (column * grid.n_h + k) * grid.n_kappa + j;
        sum += geometry.volume[at] * (g[at] + g[branch + at]);
      }
      sheet[column] += geometry.density_factor[column / grid.nx] * grid.boltzmann(k) * sum;
    }
  return sheet;
}

BeamFluxes sum_beam_fluxes(const BeamGrid& grid, const std::vector<double>& currents,
                           const std::vector<double>& power) {
  constexpr double kValleys = 2.0;
  const int nx = grid.nx, nk = grid.n_h;
  const auto faces = static_cast<std::size_t>(nx) + 1;
  BeamFluxes fluxes{.current = std::vector<double>(faces),
                    .energy_flux = std::vector<double>(faces),
                    .phonon_power = power,
                    .state_current = std::vector<double>(currents.size() / nk)};
  for (std::size_t at = 0; at < currents.size(); ++at) {
    const auto k = static_cast<int>(at % nk);
    const std::size_t n = at / nk % faces;
    fluxes.state_current[at / nk] += currents[at];
    fluxes.current[n] += kValleys * currents[at];
    fluxes.energy_flux[n] += kValleys * currents[at] * grid.centre_ev(k);
  }
  for (double& value : fluxes.phonon_power) value *= kValleys;
  double taken = 0.0, low = fluxes.energy_flux[0], high = low;
  for (int i = 0; i < nx; ++i) {
    for (std::size_t at = i; at < fluxes.phonon_power.size(); at += nx)
      taken += grid.dx_nm * fluxes.phonon_power[at];
    const double total = fluxes.energy_flux[static_cast<std::size_t>(i) + 1] + taken;
    low = std::min(low, total);
    high = std::max(high, total);
  }
  fluxes.energy_defect = high - low;
  return fluxes;
}

BeamFluxes beam_fluxes(const BeamGeometry& geometry, const BeamScattering& scattering,
                       const BeamOperator& problem, const std::vector<double>& g) {
  BeamFluxes fluxes = sum_beam_fluxes(
      geometry.grid, problem.face_currents(g),
      scattering.scatters() ? scattering.phonon_power(scattering.mean(g)) : std::vector<double>{});
  fluxes.sheet_nm2 = beam_sheet_density(geometry, g);
  return fluxes;
}

}  // namespace quasi::mosfet
