#include "workers/mosfet/kernels/electrostatics/iteration_cpu.hpp"

#include <algorithm>
#include <cmath>

#include "workers/backend/ranks/parallel_failure.hpp"
#include "workers/mosfet/kernels/electrostatics/largest_magnitude.hpp"
#include "workers/mosfet/kernels/electrostatics/subbands.hpp"
#include "workers/mosfet/physics/chord.hpp"
#include "workers/mosfet/physics/working_units.hpp"

namespace quasi::mosfet {
namespace {

PotentialBoundary as_boundary(const TransportProblem& problem, const PointBoundary& boundary) {
  return {problem.fixed, boundary.fixed_v};
}

}  // namespace

FieldIteration::FieldIteration(const TransportProblem& problem,
                               std::shared_ptr<const NewtonMethod> newton)
    : problem_(problem), newton_(std::move(newton)) {
  const Structure& s = problem.structure;
  const double largest = *std::max_element(s.doping_nm3.begin(), s.doping_nm3.end());
  residual_unit_ = kChargeOverEpsilon0_v_nm * largest * s.dx_nm * s.dz_nm;
}

void FieldIteration::refresh(const PointBoundary& boundary, const PointState& state,
                             const std::vector<double>& sheet_nm2) {
  if (newton_ != nullptr) return;
  const Structure& s = problem_.structure;
  const int n = s.interior(), nf = s.n_families(), count = s.n_valleys() * s.subbands;
  std::vector<double> responses(static_cast<std::size_t>(s.nx) * s.nz * s.nz);
  ParallelFailure failure;
#pragma omp parallel
  {
    std::vector<double> energy(static_cast<std::size_t>(nf) * n), vectors(energy.size() * n);
    std::vector<double> sheet(static_cast<std::size_t>(count));
    ColumnStates states{std::vector<const double*>(nf), std::vector<const double*>(nf)};
#pragma omp for schedule(static)
    for (int i = 0; i < s.nx; ++i)
      failure.guard([&] {
        for (int f = 0; f < nf; ++f) {
          states.energies[f] = &energy[static_cast<std::size_t>(f) * n];
          states.vectors[f] = &vectors[static_cast<std::size_t>(f) * n * n];
          all_states(s, f, &state.potential_v[static_cast<std::size_t>(i) * s.nz],
                     &energy[static_cast<std::size_t>(f) * n],
                     &vectors[static_cast<std::size_t>(f) * n * n]);
        }
        for (int k = 0; k < count; ++k)
          sheet[k] = sheet_nm2[static_cast<std::size_t>(k) * s.nx + i];
        column_response(s, states, sheet.data(), nullptr, true,
                        &responses[static_cast<std::size_t>(i) * s.nz * s.nz]);
      });
  }
  failure.rethrow();
  matrix_ = std::make_unique<ColumnMatrix>(s, as_boundary(problem_, boundary), responses);
  matrix_->factorise();
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
    std::unique_ptr<NewtonMatrix> matrix;
    if (newton_ != nullptr)
      matrix = newton_->linearise(problem_, edges, sheet_nm2, *potential_v, energy_ev, psi);
    else if (!solve_levels(s, *potential_v, true, energy_ev, psi))
      return report;
    std::fill(density.begin(), density.end(), 0.0);
#pragma omp parallel for schedule(static)
    for (int i = 0; i < s.nx; ++i)
      for (int v = 0; v < s.n_valleys(); ++v)
        for (int p = 0; p < s.subbands; ++p) {
          const double rho =
              2.0 * sheet_nm2[(static_cast<std::size_t>(v) * s.subbands + p) * s.nx + i];
          const double* state =
              &(*psi)[((static_cast<std::size_t>(s.family_of[v]) * s.subbands + p) * s.nx + i) *
                      s.nz];
          for (int j = 0; j < s.nz; ++j)
            density[static_cast<std::size_t>(i) * s.nz + j] += rho * state[j] * state[j];
        }
    std::vector<double> step = poisson_residual(s, edges, *potential_v, density);
    report.residual = largest_magnitude(step) / residual_unit_;
    matrix != nullptr ? matrix->solve(step.data()) : matrix_->solve(step.data());
    const double largest = largest_magnitude(step);
    if (!(largest < kHopelessChordStep_v)) return report;
    report.last_step_v = largest;
    const double factor = largest > kLargestChordStep_v ? kLargestChordStep_v / largest : 1.0;
    for (std::size_t k = 0; k < step.size(); ++k) (*potential_v)[k] -= factor * step[k];
    if (largest <= problem_.tol_v && report.residual <= kChordResidual) {
      // δH = −δV = +step. The levels change to first order, with an error of order δV².
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

FieldStep::FieldStep(const FieldIteration& iteration, const PointBoundary& boundary, double dt_fs,
                     PointState* state)
    : iteration_(iteration),
      boundary_(boundary),
      state_(*state),
      ratio_(state->last_dt_fs > 0.0 ? dt_fs / state->last_dt_fs : 0.0),
      lead_per_step_(iteration.lead_fs() / dt_fs),
      v_n_(state->potential_v),
      energy_n_(state->energy_ev) {}

IterationReport FieldStep::solve(int stage, const std::vector<double>& sheet_nm2) {
  std::vector<double>& v = state_.potential_v;
  for (std::size_t k = 0; k < v.size() && iteration_.predicts(); ++k)
    v[k] = predicted_potential(stage, v_n_[k], stage > 0 ? v_1_[k] : 0.0, stage > 1 ? v_2_[k] : 0.0,
                               {state_.trend_v[k], state_.curvature_v[k], ratio_});
  const IterationReport report =
      iteration_.solve(boundary_, sheet_nm2, &v, &state_.energy_ev, &state_.psi);
  if (stage == 0) v_1_ = v;
  if (stage == 1) v_2_ = v;
  return report;
}

void FieldStep::keep_trend() {
  for (std::size_t k = 0; k < v_n_.size(); ++k) {
    state_.trend_v[k] = potential_trend(v_n_[k], v_1_[k]);
    state_.curvature_v[k] = potential_curvature(v_n_[k], v_1_[k], v_2_[k]);
  }
  state_.lead_ev.resize(energy_n_.size());
  for (std::size_t k = 0; k < energy_n_.size(); ++k)
    state_.lead_ev[k] = lead_per_step_ * (state_.energy_ev[k] - energy_n_[k]);
}

}  // namespace quasi::mosfet
