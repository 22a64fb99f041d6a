#pragma once

#include "workers/mosfet/kernels/device_point.cuh"
#include "workers/mosfet/kernels/electrostatics/warp_level.cuh"
#include "workers/mosfet/physics/chord.hpp"
#include "workers/mosfet/physics/tridiagonal.hpp"
#include "workers/mosfet/physics/working_units.hpp"

namespace quasi::mosfet::cuda {

constexpr int kFieldThreads = 512;

/// Returns the shared memory of a block of field_kernel in bytes.
inline std::size_t field_shared_bytes(const DeviceProblem& p) {
  const std::size_t n = static_cast<std::size_t>(p.interior);
  return sizeof(double) * (2 * n + 5 * n * p.subbands + 64) +
         sizeof(float) * inverse_stride(p.nx * p.nz);
}

/// Returns the largest value over the threads of a block. @param scratch  one value for each warp
__device__ inline double block_maximum(double value, double* scratch) {
  for (int step = 16; step > 0; step >>= 1)
    value = fmax(value, __shfl_xor_sync(0xffffffffu, value, step));
  __syncthreads();
  if ((threadIdx.x & 31) == 0) scratch[threadIdx.x / 32] = value;
  __syncthreads();
  value = scratch[0];
  for (int k = 1; k < static_cast<int>(blockDim.x) / 32; ++k) value = fmax(value, scratch[k]);
  return value;
}

/// Returns Poisson's residual at one node (docs/theory/mosfet.md 9.1). It is zero where V is given.
__device__ inline double residual_at(const DeviceProblem& p, const double* v, const double* density,
                                     int i, int j) {
  const int at = i * p.nz + j;
  if (p.fixed[at]) return 0.0;
  double n = 0.0;
  for (int f = 0; f < p.n_families; ++f) n += density[f * p.nx * p.nz + at];
  return p.stencil().residual(v, n, p.doping[at], i, j);
}

/// One block of field_kernel, which owns one column and one family of valleys. The block of the
/// first family also owns V of the column. The members are the steps of the chord iteration
/// (docs/theory/mosfet.md 9.3). The kernel places the barriers of the grid between them.
class FieldColumn {
 public:
  /// @param shared  field_shared_bytes() of shared memory @param lost    flag in shared memory that
  /// a level missed its certificate
  __device__ __forceinline__ FieldColumn(const DeviceProblem& p, const DevicePoint& q,
                                         double* shared, int* lost)
      : p_(p), q_(q), lost_(lost) {
    diagonal_ = shared;
    off_ = diagonal_ + p.interior;
    psi_ = off_ + p.interior;
    workspace_ = psi_ + p.subbands * p.interior;
    scratch_ = workspace_ + 4 * p.subbands * p.interior;
    residual_ = reinterpret_cast<float*>(scratch_ + 64);
    i_ = blockIdx.x / p.n_families;
    family_ = blockIdx.x % p.n_families;
    lane_ = threadIdx.x & 31;
    warp_ = threadIdx.x / 32;
    warps_ = blockDim.x / 32;
    nodes_ = p.nx * p.nz;
    stride_ = inverse_stride(nodes_);
  }

  /// Sums ϱ of this column and family, one warp for each state.
  __device__ __forceinline__ void sum_sheet_density() const {
    for (int v = 0; v < p_.n_valleys; ++v) {
      if (p_.family_of[v] != family_) continue;
      for (int b = warp_; b < p_.subbands; b += warps_) {
        const int state = v * p_.subbands + b;
        const double* row = q_.angle_sum + (static_cast<long long>(state) * p_.nx + i_) * p_.nw;
        double sum = 0.0;
        for (int l = lane_; l < p_.nw; l += 32) sum += row[l];
        for (int step = 16; step > 0; step >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, step);
        if (lane_ == 0) q_.sheet[state * p_.nx + i_] = sum * p_.dw * q_.pdf_scale;
      }
    }
  }

  /// Writes the predicted V, keeps V and ε of the step's start, and loads the constant part of H. A
  /// barrier of the grid must follow.
  __device__ __forceinline__ void predict(int stage) const {
    if (stage == 0 && owns_potential())
      for (int j = threadIdx.x; j < p_.nz; j += blockDim.x) q_.v_n[node(j)] = q_.potential[node(j)];
    const PointClock* clock = q_.clock;
    const double ratio = clock->last_dt > 0.0 ? clock->dt / clock->last_dt : 0.0;
    if (owns_potential())
      for (int j = threadIdx.x; j < p_.nz; j += blockDim.x) {
        const int at = node(j);
        q_.potential[at] = predicted_potential(stage, q_.v_n[at], stage > 0 ? q_.v_1[at] : 0.0,
                                               stage > 1 ? q_.v_2[at] : 0.0,
                                               {q_.trend[at], q_.curvature[at], ratio});
      }
    for (int k = threadIdx.x; k < p_.interior - 1; k += blockDim.x)
      off_[k] = p_.off[family_ * p_.interior + k];
    if (threadIdx.x == 0) *lost_ = 0;
    if (stage == 0 && p_.lead > 0.0)
      for (int b = threadIdx.x; b < p_.subbands; b += blockDim.x)
        q_.energy_n[level(b)] = q_.energy[level(b)];
  }

  /// Solves for ε and ψ at the present V, one warp for each level, with the last ε as start.
  __device__ __forceinline__ void solve_levels() const {
    for (int k = threadIdx.x; k < p_.interior; k += blockDim.x)
      diagonal_[k] = p_.base[family_ * p_.interior + k] - q_.potential[node(k + 1)];
    __syncthreads();
    double bound = 0.0;
    for (int k = threadIdx.x; k < p_.interior; k += blockDim.x)
      bound = fmax(bound, fabs(diagonal_[k]) + (k > 0 ? fabs(off_[k - 1]) : 0.0) +
                              (k + 1 < p_.interior ? fabs(off_[k]) : 0.0));
    const double scale_ev = block_maximum(bound, scratch_);
    for (int b = warp_; b < p_.subbands; b += warps_) {
      double* energy = q_.energy + level(b);
      const Tridiagonal t{diagonal_, off_, p_.interior, scale_ev};
      double* work = workspace_ + 4 * b * p_.interior;
      double value = *energy;
      __syncwarp();
      const bool good = warp_solve_level(t, b, p_.dz, &value,
                                         {psi_ + b * p_.interior, work, work + p_.interior,
                                          work + 2 * p_.interior, work + 3 * p_.interior});
      if (lane_ == 0) {
        *energy = value;
        if (!good) *lost_ = 1;
      }
    }
    __syncthreads();
  }

  /// Forms the electron density of this family in this column. A barrier of the grid must follow.
  __device__ __forceinline__ void form_density() const {
    for (int k = threadIdx.x; k < p_.interior; k += blockDim.x) {
      double sum = 0.0;
      for (int v = 0; v < p_.n_valleys; ++v) {
        if (p_.family_of[v] != family_) continue;
        for (int b = 0; b < p_.subbands; ++b) {
          const double psi = psi_[b * p_.interior + k];
          sum += 2.0 * q_.sheet[(v * p_.subbands + b) * p_.nx + i_] * psi * psi;
        }
      }
      q_.family_density[family_ * nodes_ + node(k + 1)] = sum;
    }
  }

  /// Writes P[V] of all nodes into shared memory, in the order of interleaved_index(). @return ‖P‖∞
  /// over its unit
  __device__ __forceinline__ double form_residual() const {
    double largest = 0.0;
    for (int k = threadIdx.x; k < stride_; k += blockDim.x) {
      const double r =
          k < nodes_ ? residual_at(p_, q_.potential, q_.family_density, k / p_.nz, k % p_.nz) : 0.0;
      residual_[interleaved_index(k, stride_)] = static_cast<float>(r);
      largest = fmax(largest, fabs(r));
    }
    return block_maximum(largest, scratch_) / p_.residual_unit;
  }

  /// Computes this block's rows of the step M⁻¹P, one warp for each row. The step waits in memory
  /// until all blocks have read V. A barrier of the grid must follow. @param slot  [blocks] out:
  /// this block's largest |step|
  __device__ __forceinline__ void form_step(double* slot) const {
    const int blocks = gridDim.x, rows = (nodes_ + blocks - 1) / blocks;
    double largest = *lost_ ? 1e300 : 0.0;
    for (int k = warp_; k < rows; k += warps_) {
      const int row = blockIdx.x * rows + k;
      if (row >= nodes_) break;
      const double sum = narrow_row_product(q_.inverse + static_cast<long long>(row) * stride_,
                                            residual_, stride_, lane_);
      if (lane_ == 0) step()[row] = sum;
      largest = fmax(largest, fabs(sum));
    }
    largest = block_maximum(largest, scratch_);
    if (threadIdx.x == 0) slot[blockIdx.x] = largest;
  }

  /// Returns max |step| over all blocks.
  __device__ __forceinline__ double largest_step(const double* slot) const {
    double all = 0.0;
    for (int k = threadIdx.x; k < static_cast<int>(gridDim.x); k += blockDim.x)
      all = fmax(all, slot[k]);
    return block_maximum(all, scratch_);
  }

  /// Sets V ← V − factor · step in this column.
  __device__ __forceinline__ void take_step(double factor) const {
    if (!owns_potential()) return;
    for (int j = threadIdx.x; j < p_.nz; j += blockDim.x)
      q_.potential[node(j)] -= factor * step()[node(j)];
  }

  /// Changes ε by the last step to first order: δH = −δV.
  __device__ __forceinline__ void follow_last_step() const {
    for (int b = warp_; b < p_.subbands; b += warps_) {
      double shift = 0.0;
      for (int k = lane_; k < p_.interior; k += 32) {
        const double psi = psi_[b * p_.interior + k];
        shift += psi * psi * step()[node(k + 1)];
      }
      for (int step = 16; step > 0; step >>= 1) shift += __shfl_xor_sync(0xffffffffu, shift, step);
      if (lane_ == 0) q_.energy[level(b)] += shift * p_.dz;
    }
  }

  /// Stores ψ, and the values that the predictor of later stages and steps needs. A barrier of the
  /// block must precede.
  __device__ __forceinline__ void store(int stage) const {
    if (stage == 2 && p_.lead > 0.0)
      for (int b = threadIdx.x; b < p_.subbands; b += blockDim.x)
        q_.lead[level(b)] = p_.lead / q_.clock->dt * (q_.energy[level(b)] - q_.energy_n[level(b)]);
    for (int k = threadIdx.x; k < p_.subbands * p_.interior; k += blockDim.x) {
      const int b = k / p_.interior, j = k - b * p_.interior;
      q_.psi[static_cast<long long>(level(b)) * p_.nz + j + 1] = psi_[k];
    }
    if (!owns_potential()) return;
    for (int j = threadIdx.x; j < p_.nz; j += blockDim.x) {
      const int at = node(j);
      const double v = q_.potential[at];
      if (stage == 0) q_.v_1[at] = v;
      if (stage == 1) q_.v_2[at] = v;
      if (stage == 2) {
        q_.trend[at] = potential_trend(q_.v_n[at], q_.v_1[at]);
        q_.curvature[at] = potential_curvature(q_.v_n[at], q_.v_1[at], q_.v_2[at]);
      }
    }
  }

 private:
  __device__ __forceinline__ bool owns_potential() const { return family_ == 0; }
  __device__ __forceinline__ int node(int j) const { return i_ * p_.nz + j; }
  __device__ __forceinline__ int level(int b) const {
    return (family_ * p_.subbands + b) * p_.nx + i_;
  }
  /// Returns the step [nx][nz], which is stored after the two slots of largest steps.
  __device__ __forceinline__ double* step() const { return q_.block_max + 2 * gridDim.x; }

  const DeviceProblem& p_;
  const DevicePoint& q_;
  double* diagonal_;   ///< diagonal of H [interior]
  double* off_;        ///< [interior]
  double* psi_;        ///< [subbands][interior]
  double* workspace_;  ///< [subbands][4][interior]
  double* scratch_;    ///< [64]
  float* residual_;    ///< P, [stride] in the order of interleaved_index()
  int* lost_;
  int i_, family_, lane_, warp_, warps_, nodes_, stride_;
};

}  // namespace quasi::mosfet::cuda
