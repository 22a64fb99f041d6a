#include "workers/mosfet/kernels/beam/beam_noise.hpp"

#include <algorithm>
#include <numeric>

#include "workers/backend/error.hpp"

namespace quasi::mosfet {
namespace {

constexpr int kMaxSweeps = 1000;

std::vector<double> solve(const BeamOperator& problem, const BeamScattering& scattering,
                          double tolerance) {
  const BeamSolution found =
      solve_beam(problem, scattering, {tolerance, kMaxSweeps, BeamNorm::kOccupation});
  if (!found.converged)
    throw NotConverged("noise: GMRES left a residual of " + std::to_string(found.residual));
  return found.g;
}

/// Holds one line (state, k, j) of g and Ψ.
struct NoiseLine {
  const BeamGeometry& geometry;
  const std::vector<double>&g, &leaves;  ///< leaves: Ψ in the layout of g
  int state;
  std::int64_t cell;  ///< k n_kappa + j

  std::size_t node(int i) const { return static_cast<std::size_t>(geometry.node(state, i) + cell); }
  std::size_t minus(int i) const { return node(i) + g.size() / 2; }
  double area(int n) const {
    return geometry.area[static_cast<std::size_t>(geometry.face(state, n) + cell)];
  }
};

double square(double x) { return x * x; }

// Returns Σ rate (ΔΨ)² of the moves along a line, per c_ν C_ν and in units of g. @param source,
// drain  g that enters
double streaming_noise(const NoiseLine& line, double source, double drain) {
  const std::vector<double>&g = line.g, &leaves = line.leaves;
  const int nx = line.geometry.grid.nx;
  const std::size_t first = line.node(0), last = line.node(nx - 1);
  const std::size_t first_minus = line.minus(0), last_minus = line.minus(nx - 1);
  double sum = line.area(0) * (source * square(1.0 - leaves[first]) +
                               g[first_minus] * square(1.0 - leaves[first_minus]));
  sum += line.area(nx) * (drain * square(leaves[last_minus]) + g[last] * square(leaves[last]));
  for (int i = 0; i < nx; ++i) {
    const std::size_t plus = line.node(i), minus = line.minus(i);
    const double a = line.area(i), after = line.area(i + 1);
    const double turns = a > after ? (a - after) * g[plus] : (after - a) * g[minus];
    sum += turns * square(leaves[plus] - leaves[minus]);
    if (i + 1 == nx) continue;
    const std::size_t next = line.node(i + 1), next_minus = line.minus(i + 1);
    sum += after * (g[plus] * square(leaves[next] - leaves[plus]) +
                    g[next_minus] * square(leaves[minus] - leaves[next_minus]));
  }
  return sum;
}

}  // namespace

BeamNoise beam_noise(const BeamGeometry& geometry, const BeamScattering& scattering,
                     const BeamInflow& inflow, double tolerance) {
  constexpr double kValleys = 2.0;
  const BeamGrid& grid = geometry.grid;
  const BeamOperator problem(geometry, scattering, inflow, BeamOrder::kFirst);
  const std::vector<double> g = solve(problem, scattering, tolerance);
  // Motion is reversible, so that Ψ is the solution for an inflow of 1 at the source alone, with
  // both branches exchanged.
  const auto cells_of_h = static_cast<std::size_t>(grid.n_h);
  const BeamInflow unit{std::vector<double>(cells_of_h, 1.0), std::vector<double>(cells_of_h, 0.0)};
  const BeamOperator reverse(geometry, scattering, unit, BeamOrder::kFirst);
  std::vector<double> leaves = solve(reverse, scattering, tolerance);
  std::swap_ranges(leaves.begin(), leaves.begin() + static_cast<std::ptrdiff_t>(g.size() / 2),
                   leaves.begin() + static_cast<std::ptrdiff_t>(g.size() / 2));
  double moves = scattering.noise(g, leaves, leaves) * grid.dx_nm;
  for (int state = 0; state < geometry.n_states; ++state)
    for (std::int64_t cell = 0; cell < geometry.lines(); ++cell) {
      const auto k = static_cast<std::size_t>(cell / grid.n_kappa);
      moves +=
          geometry.density_factor[static_cast<std::size_t>(state)] *
          geometry.speed_factor[static_cast<std::size_t>(state)] *
          grid.boltzmann(static_cast<int>(k)) *
          streaming_noise({geometry, g, leaves, state, cell}, inflow.source[k], inflow.drain[k]);
    }
  const BeamFluxes fluxes = beam_fluxes(geometry, scattering, problem, g);
  return {fluxes.current.front(), 2.0 * kValleys * moves};
}

}  // namespace quasi::mosfet
