#include <algorithm>
#include <utility>
#include <vector>

#include "workers/mosfet/kernels/transport/inflow.hpp"
#include "workers/mosfet/kernels/transport/transport_cpu.hpp"

namespace quasi::mosfet {

std::array<double, 2> neutral_inflow(const TransportProblem& problem, const PointBoundary& boundary,
                                     const double* pdf) {
  std::array<double, 2> scale{};
  for (const int side : {0, 1}) {
    const int plane = side == 0 ? 0 : problem.structure.nx - 1;
    double rest = 0.0;
    for (int state = 0; state < problem.n_states(); ++state)
      for (int l = 0; l < problem.nw; ++l) {
        const double* row =
            pdf +
            ((static_cast<std::int64_t>(state) * problem.structure.nx + plane) * problem.nw + l) *
                problem.angles;
        for (int m = 0; m < problem.angles; ++m)
          if (!enters(problem.cos_phi[m], side)) rest += problem.weight[m] * row[m];
      }
    scale[side] = inflow_scale(boundary.neutral[side], rest * problem.dw_ev);
  }
  return scale;
}

void sum_angles(const TransportProblem& problem, const double* pdf, double* angle_sum) {
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < problem.rows(); ++row) {
    double sum = 0.0;
    for (int m = 0; m < problem.angles; ++m)
      sum += problem.weight[m] * pdf[row * problem.angles + m];
    angle_sum[row] = sum;
  }
}

Moments moments_of(const TransportProblem& problem, double pdf_scale, std::vector<double> sheet_nm2,
                   const double* pdf, std::vector<double> angle_sum) {
  const Structure& s = problem.structure;
  const auto cells = static_cast<std::size_t>(problem.n_states()) * s.nx;
  Moments out{std::move(sheet_nm2), std::vector<double>(cells), std::vector<double>(cells),
              std::move(angle_sum)};
#pragma omp parallel for schedule(static)
  for (std::int64_t cell = 0; cell < static_cast<std::int64_t>(cells); ++cell) {
    const auto valley = static_cast<std::size_t>(cell / s.nx / s.subbands);
    double flux = 0.0, energy = 0.0;
    for (int l = 0; l < problem.nw; ++l) {
      const std::size_t at = static_cast<std::size_t>(cell) * problem.nw + l;
      const double* row = pdf + at * problem.angles;
      double along = 0.0;
      for (int m = 0; m < problem.angles; ++m)
        along += problem.weight[m] * problem.cos_phi[m] * row[m];
      flux += problem.speed_nm_fs[valley * problem.nw + l] * along;
      energy += problem.grid().w(l) * out.pdf_w[at];
    }
    out.flux_nm_fs[static_cast<std::size_t>(cell)] = flux * problem.dw_ev * pdf_scale;
    out.energy_ev_nm2[static_cast<std::size_t>(cell)] = energy * problem.dw_ev * pdf_scale;
  }
  for (double& value : out.pdf_w) value *= pdf_scale;
  return out;
}

Filling filling_of(const TransportProblem& problem, double pdf_scale, const double* angle_sum) {
  const int nw = problem.nw, nx = problem.structure.nx, subbands = problem.structure.subbands;
  Filling filling;
  for (std::int64_t row = 0; row < problem.rows(); ++row) {
    const auto valley = static_cast<int>(row / nw / nx / subbands);
    const double f = angle_sum[row] / problem.grid().kane(static_cast<int>(row % nw)) /
                     problem.full_filling(valley, pdf_scale);
    filling.lowest = std::min(filling.lowest, f);
    filling.highest = std::max(filling.highest, f);
    filling.outside += f < 0.0 || f > 1.0;
  }
  return filling;
}

}  // namespace quasi::mosfet
