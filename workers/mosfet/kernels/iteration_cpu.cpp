#include "workers/mosfet/kernels/iteration_cpu.hpp"

#include <algorithm>
#include <cmath>

#include "workers/mosfet/kernels/subbands.hpp"
#include "workers/mosfet/physics/tridiagonal.hpp"
#include "workers/mosfet/physics/working_units.hpp"

namespace quasi::mosfet {
namespace {

constexpr int kMaxChordSteps = 30;
constexpr double kLargestStep_v = 0.1;
constexpr double kResidualTolerance = 1e-6;

PotentialBoundary as_boundary(const TransportProblem& problem, const PointBoundary& boundary) {
  return {problem.fixed, boundary.fixed_v};
}

}  // namespace

FieldIteration::FieldIteration(const TransportProblem& problem) : problem_(problem) {
  const Structure& s = problem.structure;
  const double largest = *std::max_element(s.doping_nm3.begin(), s.doping_nm3.end());
  residual_unit_ = kChargeOverEpsilon0_v_nm * largest * s.dx_nm * s.dz_nm;
}

void FieldIteration::refresh(const PointBoundary& boundary, const PointState& state,
                             const std::vector<double>& sheet_nm2) {
  const Structure& s = problem_.structure;
  const int n = s.interior(), nf = s.n_families(), count = s.n_valleys() * s.subbands;
  std::vector<double> responses(static_cast<std::size_t>(s.nx) * s.nz * s.nz);
#pragma omp parallel
  {
    std::vector<double> energy(static_cast<std::size_t>(nf) * n), vectors(energy.size() * n);
    std::vector<double> sheet(static_cast<std::size_t>(count));
    std::vector<const double*> energies(nf), families(nf);
#pragma omp for schedule(static)
    for (int i = 0; i < s.nx; ++i) {
      for (int f = 0; f < nf; ++f) {
        energies[f] = &energy[static_cast<std::size_t>(f) * n];
        families[f] = &vectors[static_cast<std::size_t>(f) * n * n];
        all_states(s, f, &state.potential_v[static_cast<std::size_t>(i) * s.nz],
                   &energy[static_cast<std::size_t>(f) * n],
                   &vectors[static_cast<std::size_t>(f) * n * n]);
      }
      for (int k = 0; k < count; ++k) sheet[k] = sheet_nm2[static_cast<std::size_t>(k) * s.nx + i];
      column_response(s, energies, families, sheet.data(), nullptr, true,
                      &responses[static_cast<std::size_t>(i) * s.nz * s.nz]);
    }
  }
  matrix_ = std::make_unique<ColumnMatrix>(s, as_boundary(problem_, boundary), responses);
  matrix_->factorise();
}

bool FieldIteration::solve_levels(const std::vector<double>& potential_v,
                                  std::vector<double>* energy_ev, std::vector<double>* psi) const {
  const Structure& s = problem_.structure;
  const int n = s.interior();
  bool good = true;
#pragma omp parallel reduction(&& : good)
  {
    std::vector<double> diagonal(n), forward(n), backward(n);
#pragma omp for schedule(static)
    for (int column = 0; column < s.nx * s.n_families(); ++column) {
      const int family = column / s.nx, i = column % s.nx;
      const Structure::Family& f = s.families[static_cast<std::size_t>(family)];
      for (int k = 0; k < n; ++k)
        diagonal[k] = f.base_ev[k] - potential_v[static_cast<std::size_t>(i) * s.nz + k + 1];
      const Tridiagonal t{diagonal.data(), f.off_ev.data(), n,
                          gershgorin_bound(diagonal.data(), f.off_ev.data(), n)};
      for (int p = 0; p < s.subbands; ++p) {
        const std::size_t at = (static_cast<std::size_t>(family) * s.subbands + p) * s.nx + i;
        good = solve_level(t, p, true, s.dz_nm, &(*energy_ev)[at], &(*psi)[at * s.nz + 1],
                           forward.data(), backward.data()) && good;
      }
    }
  }
  return good;
}

IterationReport FieldIteration::solve(const PointBoundary& boundary,
                                      const std::vector<double>& sheet_nm2,
                                      std::vector<double>* potential_v,
                                      std::vector<double>* energy_ev,
                                      std::vector<double>* psi) const {
  const Structure& s = problem_.structure;
  const PotentialBoundary edges = as_boundary(problem_, boundary);
  std::vector<double> density(potential_v->size());
  IterationReport report;
  while (report.iterations < kMaxChordSteps) {
    ++report.iterations;
    if (!solve_levels(*potential_v, energy_ev, psi)) return report;
    std::fill(density.begin(), density.end(), 0.0);
#pragma omp parallel for schedule(static)
    for (int i = 0; i < s.nx; ++i)
      for (int v = 0; v < s.n_valleys(); ++v)
        for (int p = 0; p < s.subbands; ++p) {
          const double rho = 2.0 * sheet_nm2[(static_cast<std::size_t>(v) * s.subbands + p) * s.nx + i];
          const double* state =
              &(*psi)[((static_cast<std::size_t>(s.family_of[v]) * s.subbands + p) * s.nx + i) * s.nz];
          for (int j = 0; j < s.nz; ++j)
            density[static_cast<std::size_t>(i) * s.nz + j] += rho * state[j] * state[j];
        }
    std::vector<double> step = poisson_residual(s, edges, *potential_v, density);
    double residual = 0.0;
    for (const double value : step) residual = std::max(residual, std::fabs(value));
    report.residual = residual / residual_unit_;
    matrix_->solve(step.data());
    double largest = 0.0;
    for (const double value : step) largest = std::max(largest, std::fabs(value));
    if (!(largest < 1e6)) return report;
    report.last_step_v = largest;
    const double factor = largest > kLargestStep_v ? kLargestStep_v / largest : 1.0;
    for (std::size_t k = 0; k < step.size(); ++k) (*potential_v)[k] -= factor * step[k];
    if (largest <= problem_.tol_v && report.residual <= kResidualTolerance) {
      // δH = −δV = +step: the levels follow to first order, with an error of order δV².
      for (int level = 0; level < s.n_families() * s.subbands; ++level)
        for (int i = 0; i < s.nx; ++i) {
          const std::size_t at = static_cast<std::size_t>(level) * s.nx + i;
          double shift = 0.0;
          for (int j = 1; j < s.nz - 1; ++j)
            shift += (*psi)[at * s.nz + j] * (*psi)[at * s.nz + j] *
                     step[static_cast<std::size_t>(i) * s.nz + j];
          (*energy_ev)[at] += shift * s.dz_nm;
        }
      report.converged = true;
      return report;
    }
  }
  return report;
}

}  // namespace quasi::mosfet
