#pragma once

#include <cub/cub.cuh>

#include <cstdint>

#include "workers/backend/complex.hpp"
#include "workers/thermal/kernels/three_phonon/process_3ph.hpp"
#include "workers/thermal/physics/matrix_element.hpp"
#include "workers/thermal/physics/q_mesh.hpp"

namespace quasi::thermal::cuda3ph {

constexpr int kThreads = 256;
constexpr int kTemperaturesAtOnce = 4;  ///< sums of so many temperatures stay in registers

/// Device copies of the problem.
struct Tables3 {
  QMesh mesh;
  int nb;
  ProcessRules3 rules;
  const Complex<double>* e;   ///< [n_modes][nb]
  const std::int32_t* point;  ///< [n_rows / nb] q of the rows
  const int* first_zone;      ///< [n_q][3]
  const double* occupation;   ///< [nT][n_modes]

  QUASI_HD std::int64_t mode_of_row(std::int64_t row) const {
    return static_cast<std::int64_t>(point[row / nb]) * nb + row % nb;
  }
};

/// A mode's frequency and spread vector in registers.
struct ModeData {
  double omega;
  Spread spread;
};
__device__ inline ModeData mode_data(const ProcessRules3& rules, std::int64_t mode) {
  return {__ldg(rules.omega_rad_ps + mode),
          {__ldg(rules.spread_rad_ps + 3 * mode), __ldg(rules.spread_rad_ps + 3 * mode + 1),
           __ldg(rules.spread_rad_ps + 3 * mode + 2)}};
}

/// Calls hit(process) for every process of mode m0 with q'' = q0 + p: both channels, in fixed
/// order. The tests are ProcessRules3::allowed, taken apart so that a mode's data are loaded once.
template <typename Hit>
__device__ inline void test_point(const Tables3& t, const ModeData& zero, std::int64_t q0,
                                  std::int64_t p, const Hit& hit) {
  const std::int64_t q2 = t.mesh.add(q0, p, 1);
  const std::int64_t minus = t.mesh.minus(p);
  const ProcessRules3& rules = t.rules;
  for (int s2 = 0; s2 < t.nb; ++s2) {
    const ModeData two = mode_data(rules, q2 * t.nb + s2);
    if (two.omega >= ProcessRules3::kInactive) continue;
    for (int s1 = 0; s1 < t.nb; ++s1)
      for (int channel = 0; channel < 2; ++channel) {
        const std::int64_t m1 = (channel == 0 ? p : minus) * t.nb + s1;
        const ModeData one = mode_data(rules, m1);
        if (one.omega >= ProcessRules3::kInactive) continue;
        const Channel3 kind = channel == 0 ? Channel3::kAbsorption : Channel3::kEmission;
        const double mismatch = ProcessRules3::mismatch(kind, zero.omega, one.omega, two.omega);
        if (rules.in_window(
                mismatch, width_squared_3ph(rules.broadening, zero.spread, one.spread, two.spread)))
          hit(Process3{static_cast<std::int32_t>(channel == 0 ? m1 : ~m1),
                       static_cast<std::int32_t>(q2 * t.nb + s2), 0.0});
      }
  }
}

/// Counts of one row by a block: [row][absorption, emission].
__global__ void __launch_bounds__(kThreads)
    count_kernel(Tables3 t, const std::int64_t* rows, std::int64_t* counts) {
  const std::int64_t m0 = t.mode_of_row(rows[blockIdx.x]);
  const ModeData zero = mode_data(t.rules, m0);
  int mine[2] = {0, 0};
  if (t.rules.active(m0))
    for (std::int64_t p = threadIdx.x; p < t.mesh.size(); p += kThreads)
      test_point(t, zero, m0 / t.nb, p,
                 [&](const Process3& process) { ++mine[process.emission() ? 1 : 0]; });
  using Reduce = cub::BlockReduce<int, kThreads>;
  __shared__ typename Reduce::TempStorage storage;
  for (int c = 0; c < 2; ++c) {
    const int sum = Reduce(storage).Sum(mine[c]);
    if (threadIdx.x == 0) counts[2 * blockIdx.x + c] = sum;
    __syncthreads();
  }
}

/// Writes the processes of rows first_row + blockIdx at their places, p ascending: the order, and
/// so every later sum, does not depend on how threads were scheduled.
__global__ void __launch_bounds__(kThreads)
    fill_kernel(Tables3 t, std::int64_t first_row, const std::int64_t* first_process,
                std::int64_t base, Process3* list) {
  const std::int64_t row = first_row + blockIdx.x;
  const std::int64_t m0 = t.mode_of_row(row);
  if (!t.rules.active(m0)) return;
  const ModeData zero = mode_data(t.rules, m0);
  using Scan = cub::BlockScan<int, kThreads>;
  __shared__ typename Scan::TempStorage storage;
  std::int64_t at = first_process[row] - base;
  for (std::int64_t start = 0; start < t.mesh.size(); start += kThreads) {
    const std::int64_t p = start + threadIdx.x;
    int mine = 0;
    if (p < t.mesh.size()) test_point(t, zero, m0 / t.nb, p, [&](const Process3&) { ++mine; });
    int before;
    int total;
    Scan(storage).ExclusiveSum(mine, before, total);
    __syncthreads();
    if (mine > 0) {
      Process3* out = list + at + before;
      test_point(t, zero, m0 / t.nb, p, [&](const Process3& process) { *out++ = process; });
    }
    at += total;
  }
}

/// Slot 1 contracted with e_λ and slot 3's cell with e^{−iq·R''}, gathered by target so that
/// nothing is added by two threads. Index: ((point of the batch · nb + s) · n_groups + group) · 9 +
/// element.
struct ContractFirstSlot {
  QMesh mesh;
  int nb;
  PhaseTable phase;
  const Complex<double>* e;
  const std::int32_t* point;  ///< of the batch
  std::int64_t n_groups;
  const int* group_first;   ///< [n_groups + 1]
  const int* group_target;  ///< [n_groups] (box index · nb + 3κ') · nb + 3κ''
  const int* block;         ///< blocks sorted by group
  const int* first_component;
  const int* third_cell;
  const int* cells;  ///< [n_cells][3]
  const double* tensor;
  std::int64_t box_size;
  Complex<double>* box;  ///< [batch][box][s][nb][nb]

  QUASI_HD void operator()(std::int64_t index) const {
    const int element = static_cast<int>(index % 9);
    const std::int64_t group = index / 9 % n_groups;
    const int s = static_cast<int>(index / 9 / n_groups % nb);
    const std::int64_t local = index / 9 / n_groups / nb;
    const std::int64_t q = point[local];
    int c[3];
    mesh.coordinates(q, c);
    const Complex<double>* e0 = e + (q * nb + s) * nb;
    Complex<double> sum{0.0, 0.0};
    for (int i = group_first[group]; i < group_first[group + 1]; ++i) {
      const int b = block[i];
      const double* phi = tensor + 27 * static_cast<std::int64_t>(b) + element;
      const Complex<double>* x = e0 + first_component[b];
      const Complex<double> inner = phi[0] * x[0] + phi[9] * x[1] + phi[18] * x[2];
      sum += conj(phase(c, cells + 3 * third_cell[b])) * inner;
    }
    const std::int64_t target = group_target[group];
    const std::int64_t matrix = target / (nb * nb);  // box index
    const std::int64_t place = target % (nb * nb) + (element / 3) * nb + element % 3;
    box[((local * box_size + matrix) * nb + s) * nb * nb + place] = sum;
  }
};

/// Weight of every process of the rows of a batch, from A_λ(p): blockIdx.y is the row within the
/// batch.
template <typename Real>
struct FactorisedArguments {
  Tables3 t;
  std::int64_t first_row;
  const std::int64_t* first_process;
  std::int64_t base;
  const Complex<Real>* e;  ///< [n_modes][nb]
  const Complex<Real>* a;  ///< [batch][n_q][s][nb][nb]
  Process3* list;
};

/// FP64 to FP32.
struct RoundComplex {
  const Complex<double>* from;
  Complex<float>* to;
  QUASI_HD void operator()(std::int64_t i) const {
    to[i] = {static_cast<float>(from[i].re), static_cast<float>(from[i].im)};
  }
};

template <int kBranches, typename Real>
__global__ void __launch_bounds__(kThreads) factorised_kernel(FactorisedArguments<Real> g) {
  const Tables3& t = g.t;
  const int nb = kBranches > 0 ? kBranches : t.nb;
  const std::int64_t local_row = blockIdx.y;
  const std::int64_t row = g.first_row + local_row;
  const std::int64_t m0 = t.mode_of_row(row);
  const std::int64_t begin = g.first_process[row] - g.base;
  const std::int64_t end = g.first_process[row + 1] - g.base;
  const Complex<Real>* a_row =
      g.a + (local_row / nb * t.mesh.size() * nb + local_row % nb) * nb * nb;
  for (std::int64_t i = begin + blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x;
       i < end; i += static_cast<std::int64_t>(gridDim.x) * kThreads) {
    const Process3 process = g.list[i];
    const bool emission = process.emission();
    const std::int64_t m1 = process.partner();
    const std::int64_t m2 = process.second;
    const std::int64_t p = emission ? t.mesh.minus(m1 / nb) : m1 / nb;
    const Complex<Real>* a = a_row + p * nb * nb * nb;
    const Complex<Real>* e1 = g.e + m1 * nb;
    const Complex<Real>* e2 = g.e + m2 * nb;
    Complex<Real> second[kBranches > 0 ? kBranches : 1];
    if constexpr (kBranches > 0)
      for (int c = 0; c < kBranches; ++c) second[c] = conj(e2[c]);
    Complex<Real> v{0, 0};
    for (int b = 0; b < nb; ++b) {
      Complex<Real> inner{0, 0};
      for (int c = 0; c < nb; ++c)
        inner += a[b * nb + c] * (kBranches > 0 ? second[kBranches > 0 ? c : 0] : conj(e2[c]));
      v += (emission ? conj(e1[b]) : e1[b]) * inner;
    }
    double mismatch;
    double width;
    t.rules.allowed(emission ? Channel3::kEmission : Channel3::kAbsorption, m0, m1, m2, mismatch,
                    width);
    const double product =
        t.rules.omega_rad_ps[m0] * t.rules.omega_rad_ps[m1] * t.rules.omega_rad_ps[m2];
    g.list[i].weight_per_ps = t.rules.prefactor * t.rules.delta_ps(mismatch, width) / product *
                              static_cast<double>(norm(v));
  }
}

/// |V|² of one process by the block sum.
__device__ inline double naive_squared(const Tables3& t, const Blocks3View& blocks,
                                       const PhaseTable& phase, std::int64_t m0,
                                       const Process3& process) {
  const std::int64_t m1 = process.partner();
  const std::int64_t m2 = process.second;
  Triplet3 triplet{.channel = process.channel(),
                   .e0 = t.e + m0 * t.nb,
                   .e1 = t.e + m1 * t.nb,
                   .e2 = t.e + m2 * t.nb};
  t.mesh.coordinates(m1 / t.nb, triplet.c1);
  t.mesh.coordinates(m2 / t.nb, triplet.c2);
  return norm(matrix_element_3ph(blocks, phase, triplet));
}

/// Weights by the block sum, for rows first_row + blockIdx.y of a list.
__global__ void __launch_bounds__(kThreads)
    naive_kernel(Tables3 t, Blocks3View blocks, PhaseTable phase, std::int64_t first_row,
                 const std::int64_t* first_process, std::int64_t base, Process3* list) {
  const std::int64_t row = first_row + blockIdx.y;
  const std::int64_t m0 = t.mode_of_row(row);
  const std::int64_t end = first_process[row + 1] - base;
  for (std::int64_t i = first_process[row] - base +
                        blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x;
       i < end; i += static_cast<std::int64_t>(gridDim.x) * kThreads) {
    const Process3 process = list[i];
    double mismatch;
    double width;
    t.rules.allowed(process.emission() ? Channel3::kEmission : Channel3::kAbsorption, m0,
                    process.partner(), process.second, mismatch, width);
    const double product = t.rules.omega_rad_ps[m0] * t.rules.omega_rad_ps[process.partner()] *
                           t.rules.omega_rad_ps[process.second];
    list[i].weight_per_ps = t.rules.prefactor * t.rules.delta_ps(mismatch, width) / product *
                            naive_squared(t, blocks, phase, m0, process);
  }
}

/// Where the sums of a row go.
struct RowOutputs3 {
  std::int64_t n_rows;
  double* absorption;  ///< [nT][n_rows]
  double* emission;
  double* normal_absorption;
  double* normal_emission;
  double* weighted_absorption;
  double* weighted_emission;
  double* phase_space_absorption;  ///< [n_rows]
  double* phase_space_emission;
};

/// Sums of one thread over some temperatures, added up by the block in a fixed tree.
struct ThreadSums3 {
  RowSums3 at[kTemperaturesAtOnce];
  double phase_space[2] = {0.0, 0.0};

  __device__ void add(const Tables3& t, std::int64_t n_modes, int first_t, int n_t, std::int64_t m0,
                      const Process3& process, double weight, double delta) {
    const bool emission = process.emission();
    const std::int64_t m1 = process.partner();
    const std::int64_t m2 = process.second;
    const double phase_space_ps4 =
        delta / (t.rules.omega_rad_ps[m0] * t.rules.omega_rad_ps[m1] * t.rules.omega_rad_ps[m2]);
    const bool normal = is_normal_3ph(
        emission ? Channel3::kEmission : Channel3::kAbsorption, t.first_zone + 3 * (m0 / t.nb),
        t.first_zone + 3 * (m1 / t.nb), t.first_zone + 3 * (m2 / t.nb));
    phase_space[emission ? 1 : 0] += delta;
#pragma unroll
    for (int k = 0; k < kTemperaturesAtOnce; ++k)
      if (k < n_t) {
        const double* n = t.occupation + (first_t + k) * n_modes;
        add_process(at[k], emission, normal, occupation_factor_3ph(emission, n[m1], n[m2]), weight,
                    phase_space_ps4);
      }
  }
  __device__ void finish(const Tables3& t, int first_t, int n_t, std::int64_t row,
                         const RowOutputs3& out) {
    using Reduce = cub::BlockReduce<double, kThreads>;
    __shared__ typename Reduce::TempStorage storage;
    const auto block_sum = [&](double x) {
      const double sum = Reduce(storage).Sum(x);
      __syncthreads();
      return sum;
    };
    const double per_point = 1.0 / static_cast<double>(t.mesh.size());
#pragma unroll
    for (int k = 0; k < kTemperaturesAtOnce; ++k) {
      if (k >= n_t) break;
      const double absorption = block_sum(at[k].absorption);
      const double emission = block_sum(at[k].emission);
      const double normal_absorption = block_sum(at[k].normal_absorption);
      const double normal_emission = block_sum(at[k].normal_emission);
      const double weighted_absorption = block_sum(at[k].weighted_absorption);
      const double weighted_emission = block_sum(at[k].weighted_emission);
      if (threadIdx.x == 0) {
        const std::int64_t to = (first_t + k) * out.n_rows + row;
        out.absorption[to] = absorption;
        out.emission[to] = 0.5 * emission;
        out.normal_absorption[to] = normal_absorption;
        out.normal_emission[to] = 0.5 * normal_emission;
        out.weighted_absorption[to] = per_point * weighted_absorption;
        out.weighted_emission[to] = 0.5 * per_point * weighted_emission;
      }
    }
    const double absorption = block_sum(phase_space[0]);
    const double emission = block_sum(phase_space[1]);
    if (threadIdx.x == 0) {
      out.phase_space_absorption[row] = absorption;
      out.phase_space_emission[row] = emission;
    }
  }
};

/// Rates of rows first_row + blockIdx from their list, some temperatures at a time.
__global__ void __launch_bounds__(kThreads)
    row_sums_kernel(Tables3 t, std::int64_t n_modes, int first_t, int n_t, std::int64_t first_row,
                    const std::int64_t* first_process, std::int64_t base, const Process3* list,
                    RowOutputs3 out) {
  const std::int64_t row = first_row + blockIdx.x;
  const std::int64_t m0 = t.mode_of_row(row);
  ThreadSums3 sums;
  const std::int64_t end = first_process[row + 1] - base;
  for (std::int64_t i = first_process[row] - base + threadIdx.x; i < end; i += kThreads) {
    const Process3 process = list[i];
    double mismatch;
    double width;
    t.rules.allowed(process.emission() ? Channel3::kEmission : Channel3::kAbsorption, m0,
                    process.partner(), process.second, mismatch, width);
    sums.add(t, n_modes, first_t, n_t, m0, process, process.weight_per_ps,
             t.rules.delta_ps(mismatch, width));
  }
  sums.finish(t, first_t, n_t, row, out);
}

/// No list: every candidate of a row tested and, if allowed, evaluated on the spot.
__global__ void __launch_bounds__(kThreads)
    test_and_sum_kernel(Tables3 t, Blocks3View blocks, PhaseTable phase, std::int64_t n_modes,
                        int first_t, int n_t, RowOutputs3 out) {
  const std::int64_t row = blockIdx.x;
  const std::int64_t m0 = t.mode_of_row(row);
  const ModeData zero = mode_data(t.rules, m0);
  ThreadSums3 sums;
  if (t.rules.active(m0))
    for (std::int64_t p = threadIdx.x; p < t.mesh.size(); p += kThreads)
      test_point(t, zero, m0 / t.nb, p, [&](const Process3& process) {
        double mismatch;
        double width;
        t.rules.allowed(process.emission() ? Channel3::kEmission : Channel3::kAbsorption, m0,
                        process.partner(), process.second, mismatch, width);
        const double delta = t.rules.delta_ps(mismatch, width);
        const double product = t.rules.omega_rad_ps[m0] * t.rules.omega_rad_ps[process.partner()] *
                               t.rules.omega_rad_ps[process.second];
        sums.add(t, n_modes, first_t, n_t, m0, process,
                 t.rules.prefactor * delta / product * naive_squared(t, blocks, phase, m0, process),
                 delta);
      });
  sums.finish(t, first_t, n_t, row, out);
}

/// One row of the collision operator by a block; with f == nullptr the row's rate (out [n_rows]).
__global__ void __launch_bounds__(kThreads)
    collision_kernel(Tables3 t, CollisionOccupations3 occupations,
                     const std::int64_t* first_process, const Process3* list, const double* f,
                     double* out) {
  const std::int64_t row = blockIdx.x;
  const std::int64_t m0 = t.mode_of_row(row);
  double sum[3] = {0.0, 0.0, 0.0};
  for (std::int64_t i = first_process[row] + threadIdx.x; i < first_process[row + 1];
       i += kThreads) {
    const Process3 process = list[i];
    const std::int64_t m1 = process.partner();
    const std::int64_t m2 = process.second;
    const CollisionTerm3 term = collision_term_3ph(occupations, m0, process);
    if (f == nullptr) {
      sum[0] += term.gamma_per_ps;
    } else {
      for (int d = 0; d < 3; ++d)
        sum[d] += term.gamma_per_ps * (f[m2 * 3 + d] + term.sign * f[m1 * 3 + d]);
    }
  }
  using Reduce = cub::BlockReduce<double, kThreads>;
  __shared__ typename Reduce::TempStorage storage;
  const int components = f == nullptr ? 1 : 3;
  for (int d = 0; d < components; ++d) {
    const double total = Reduce(storage).Sum(sum[d]);
    if (threadIdx.x == 0) out[row * components + d] = total;
    __syncthreads();
  }
}

}  // namespace quasi::thermal::cuda3ph
