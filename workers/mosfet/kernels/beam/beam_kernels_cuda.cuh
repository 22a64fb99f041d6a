#pragma once

#include "workers/backend/device/launch_cuda.cuh"
#include "workers/mosfet/kernels/beam/beam_line.hpp"
#include "workers/mosfet/kernels/beam/beam_rates.cuh"

/// Kernels of the beam scheme that work on cells of κ: geometry, lines, means and currents.
/// See docs/theory/mosfet.md 17 for the equations.
namespace quasi::mosfet::cuda {

/// Computes A, and V at the face, of the cell with this number [n_states][nx+1][nk][nj].
struct FaceCells {
  BeamTables t;
  double* face_volume;
  __device__ void operator()(std::int64_t number) const {
    const std::int64_t line = number % t.lines();
    const BeamCell cell = t.cell(static_cast<int>(line / t.nj), static_cast<int>(line % t.nj));
    const double edge = t.faces[number / t.lines()];
    t.area[number] = beam_area(cell, t.shape, t.alpha_per_ev, edge);
    face_volume[number] = beam_volume(cell, t.shape, t.alpha_per_ev, edge);
  }
};

/// Computes V of the control volume of the cell with this number [n_states][nx][nk][nj] by
/// Simpson's rule.
struct NodeCells {
  BeamTables t;
  const double* face_volume;
  __device__ void operator()(std::int64_t number) const {
    const std::int64_t lines = t.lines(), line = number % lines, node = number / lines;
    const std::int64_t face = (node + node / t.nx) * lines + line;
    const BeamCell cell = t.cell(static_cast<int>(line / t.nj), static_cast<int>(line % t.nj));
    const double centre = beam_volume(cell, t.shape, t.alpha_per_ev, t.nodes[node]);
    t.volume[number] = (face_volume[face] + 4.0 * centre + face_volume[face + lines]) / 6.0;
  }
};

/// Solves the line with this number [n_states][nk][nj].
struct Lines {
  BeamTables t;
  const double* feed;  ///< [rows]; null: none
  bool has_inflow;
  double *plus, *minus;  ///< [n_states][nx][nk][nj]
  double* work;          ///< [nx][kBeamLineWork][n_states][nk][nj]
  __device__ void operator()(std::int64_t number) const {
    const std::int64_t lines = t.lines(), line = number % lines;
    const int state = static_cast<int>(number / lines), k = static_cast<int>(line / t.nj);
    const std::int64_t row = t.row(state, 0, k), first = state * (t.nx * lines) + line;
    const double source = has_inflow ? t.inflow_source[k] : 0.0;
    const BeamLine one{.volume = t.volume + first,
                       .area = t.area + state * ((t.nx + 1) * lines) + line,
                       .stride = lines,
                       .loss = t.scatters ? t.loss + row : nullptr,
                       .feed = feed != nullptr ? feed + row : nullptr,
                       .row_stride = t.nk,
                       .nx = t.nx,
                       .full = t.full(k, static_cast<int>(line % t.nj)),
                       .scale = t.speed_factor[state] / t.dx_nm,
                       .source = source,
                       .drain = has_inflow ? t.inflow_drain[k] : 0.0,
                       .well_g = source,
                       .third = t.third};
    solve_beam_line(one, work + number, t.n_states * lines, {plus + first, minus + first, lines});
  }
};

/// Number of lanes that add the cells of κ of one row.
constexpr int kRowLanes = 8;

/// Sums a value over the lanes of a row, as a tree of fixed shape. The first lane has the sum.
__device__ inline double row_sum(double value) {
  for (int step = kRowLanes / 2; step > 0; step /= 2)
    value += __shfl_down_sync(0xffffffffu, value, step, kRowLanes);
  return value;
}

/// Computes D = 2 Σ_j V of every row, and 4√(m_x m_y) D.
inline __global__ void row_states_kernel(BeamTables t, double* weight) {
  const std::int64_t thread = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
  const std::int64_t row = thread / kRowLanes;
  double sum = 0.0;
  if (row < t.rows())
    for (int j = static_cast<int>(thread % kRowLanes); j < t.nj; j += kRowLanes)
      sum += 2.0 * t.volume[row * t.nj + j];
  sum = row_sum(sum);
  if (row >= t.rows() || thread % kRowLanes != 0) return;
  t.states[row] = sum;
  weight[row] = sum * t.states_factor[row / (static_cast<std::int64_t>(t.nx) * t.nk)];
}

/// Computes ḡ = Σ_{b,j} V g / D of every row.
inline __global__ void row_mean_kernel(BeamTables t, const double* plus, const double* minus,
                                       double* mean) {
  const std::int64_t thread = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
  const std::int64_t row = thread / kRowLanes;
  double sum = 0.0;
  if (row < t.rows())
    for (int j = static_cast<int>(thread % kRowLanes); j < t.nj; j += kRowLanes) {
      const std::int64_t at = row * t.nj + j;
      sum += t.volume[at] * (plus[at] + minus[at]);
    }
  sum = row_sum(sum);
  if (row >= t.rows() || thread % kRowLanes != 0) return;
  mean[row] = t.states[row] > 0.0 ? sum / t.states[row] : 0.0;
}

/// Returns true if upwind parabolas hold at a face: a cell is fully open at the faces first …
/// first + 3, none of which is a contact. @param area  A at face 0
__device__ inline bool is_smooth(const BeamTables& t, const double* area, double full, int first) {
  if (!t.third || first < 1 || first + 3 > t.nx - 1) return false;
  for (int n = first; n <= first + 3; ++n)
    if (area[n * t.lines()] != full) return false;
  return true;
}

/// Computes the current of one valley through the face with this number [n_states][nx+1][nk].
struct FaceCurrents {
  BeamTables t;
  const double *plus, *minus;
  double* current;
  __device__ void operator()(std::int64_t number) const {
    const int k = static_cast<int>(number % t.nk), n = static_cast<int>(number / t.nk % (t.nx + 1));
    const int state = static_cast<int>(number / t.nk / (t.nx + 1));
    const std::int64_t lines = t.lines();
    double sum = 0.0;
    for (int j = 0; j < t.nj; ++j) {
      const std::int64_t line = static_cast<std::int64_t>(k) * t.nj + j;
      const double* area = t.area + state * ((t.nx + 1) * lines) + line;
      const double full = t.full(k, j);
      const double* forward = plus + state * (t.nx * lines) + line;
      const double* backward = minus + state * (t.nx * lines) + line;
      double ahead = n > 0 ? forward[(n - 1) * lines] : t.inflow_source[k];
      double behind = n < t.nx ? backward[n * lines] : t.inflow_drain[k];
      if (is_smooth(t, area, full, n - 2))
        ahead = (2.0 * forward[n * lines] + 5.0 * ahead - forward[(n - 2) * lines]) / 6.0;
      if (is_smooth(t, area, full, n - 1))
        behind = (2.0 * backward[(n - 1) * lines] + 5.0 * behind - backward[(n + 1) * lines]) / 6.0;
      sum += area[n * lines] * (ahead - behind);
    }
    current[number] = t.density_factor[state] * t.speed_factor[state] * t.boltzmann[k] * sum;
  }
};

}  // namespace quasi::mosfet::cuda
