#pragma once

// Kernels of the linear solvers that mosfet_solvers_cuda compares.

#include <cooperative_groups.h>

#include "workers/mosfet/kernels/electrostatics/row_product.cuh"

namespace quasi::mosfet {

namespace cg = cooperative_groups;

constexpr int kThreads = 512;  ///< as the product's field kernel

__global__ void barriers_kernel(int count) {
  for (int k = 0; k < count; ++k) cg::this_grid().sync();
}

/// Σ over the lanes of a warp, on all of them.
__device__ double warp_sum(double value) {
  for (int step = 16; step > 0; step >>= 1) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

/// The dense matrix [nodes][nodes] of a block-tridiagonal one.
__global__ void dense_kernel(int nz, int nodes, const double* blocks, const double* couplings,
                             double* dense) {
  const int row = blockIdx.x, i = row / nz, j = row % nz;
  for (int c = threadIdx.x; c < nodes; c += blockDim.x) {
    const int ic = c / nz, jc = c % nz;
    double value = 0.0;
    if (ic == i)
      value = blocks[static_cast<long long>(row) * nz + jc];
    else if (jc == j && ic == i - 1)
      value = couplings[row - nz];
    else if (jc == j && ic == i + 1)
      value = couplings[row];
    dense[static_cast<long long>(row) * nodes + c] = value;
  }
}

// (a) as the product has it: P in single precision in shared memory, rows of the bfloat16 inverse.
__global__ void __launch_bounds__(kThreads, 1)
    narrow_product_kernel(int nodes, const __nv_bfloat16* inverse, const double* b, double* x) {
  extern __shared__ float parts[];
  const int stride = cuda::inverse_stride(nodes), lane = threadIdx.x & 31, warps = kThreads / 32;
  for (int k = threadIdx.x; k < stride; k += kThreads)
    parts[cuda::interleaved_index(k, stride)] = k < nodes ? static_cast<float>(b[k]) : 0.0f;
  __syncthreads();
  const int rows = (nodes + static_cast<int>(gridDim.x) - 1) / static_cast<int>(gridDim.x);
  for (int k = threadIdx.x / 32; k < rows; k += warps) {
    const int row = blockIdx.x * rows + k;
    if (row >= nodes) break;
    const double sum = cuda::narrow_row_product(inverse + static_cast<long long>(row) * stride,
                                                parts, stride, lane);
    if (lane == 0) x[row] = sum;
  }
}

// (b): every level is one batch of row products, one grid barrier apart.
template <typename T>
struct Reduced {
  static constexpr int kMost = 12;
  struct Level {
    int n;
    const T *inverse, *left, *right, *left_rows,
        *right_rows;  ///< of the odd columns, [n/2][nz][nz]
  } level[kMost];
  int levels, nz;
};

/// Σ_c m[c] x[c], m and x [nz].
template <typename T>
__device__ double block_row(const T* m, const double* x, int nz, int lane) {
  double sum = 0.0;
  for (int c = lane; c < nz; c += 32) sum += static_cast<double>(m[c]) * x[c];
  return sum;
}

template <typename T>
__global__ void __launch_bounds__(kThreads, 1) cyclic_kernel(Reduced<T> m, double* r, double* x) {
  const cg::grid_group grid = cg::this_grid();
  const int nz = m.nz, lane = threadIdx.x & 31, all = static_cast<int>(gridDim.x) * (kThreads / 32);
  const int first = static_cast<int>(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32,
            square = nz * nz;
  const auto column = [&](double* v, int i, int level) {
    return v + (static_cast<long long>(i) << level) * nz;
  };
  for (int at = 0; at + 1 < m.levels; ++at) {
    const auto& l = m.level[at];
    for (int task = first; task < l.n * nz; task += all) {
      const int i = task / nz, j = task - i * nz;
      double sum = 0.0;
      if (i % 2 == 1) {
        sum = block_row(l.inverse + static_cast<long long>(i / 2) * square + j * nz,
                        column(r, i, at), nz, lane);
      } else {
        if (i > 0)
          sum += block_row(l.left_rows + static_cast<long long>(i / 2 - 1) * square + j * nz,
                           column(r, i - 1, at), nz, lane);
        if (i + 1 < l.n)
          sum += block_row(l.right_rows + static_cast<long long>(i / 2) * square + j * nz,
                           column(r, i + 1, at), nz, lane);
      }
      sum = warp_sum(sum);
      if (lane != 0) continue;
      if (i % 2 == 1)
        column(x, i, at)[j] = sum;
      else
        column(r, i, at)[j] -= sum;
    }
    grid.sync();
  }
  for (int j = first; j < nz; j += all) {
    const double sum = warp_sum(block_row(m.level[m.levels - 1].inverse + j * nz, r, nz, lane));
    if (lane == 0) x[j] = sum;
  }
  for (int at = m.levels - 2; at >= 0; --at) {
    grid.sync();
    const auto& l = m.level[at];
    for (int task = first; task < l.n / 2 * nz; task += all) {
      const int half = task / nz, i = 2 * half + 1, j = task - half * nz;
      double sum = block_row(l.right + static_cast<long long>(half) * square + j * nz,
                             column(x, i - 1, at), nz, lane);
      if (i + 1 < l.n)
        sum += block_row(l.left + static_cast<long long>(half) * square + j * nz,
                         column(x, i + 1, at), nz, lane);
      sum = warp_sum(sum);
      if (lane == 0) column(x, i, at)[j] -= sum;
    }
  }
}

// (c): block elimination from both contacts at once by one cluster of thread blocks, half of it a
// side; a warp a row.
constexpr int kCluster = 16, kSide = kCluster / 2, kRowsEach = 9, kMostRows = kSide * kRowsEach;

template <typename T>
__global__ void __launch_bounds__(32 * kRowsEach)
    thomas_kernel(int nx, int nz, const T* inverse, const double* couplings, const double* b,
                  double* x) {
  __shared__ double vector[2][kMostRows], other_side[kMostRows];
  cg::cluster_group cluster = cg::this_cluster();
  const int rank = static_cast<int>(cluster.block_rank()), side = rank / kSide,
            lane = threadIdx.x & 31;
  const int row = rank % kSide * kRowsEach + threadIdx.x / 32, mid = nx / 2,
            steps = side == 0 ? mid : nx - 1 - mid;
  const int most = max(mid, nx - 1 - mid);  // Both sides keep step.
  const bool works = row < nz;
  const auto column_of = [&](int step) { return side == 0 ? step : nx - 1 - step; };
  // Between the columns of `step` and step+1, counted towards the middle.
  const auto coupling = [&](int step, int j) {
    return couplings[(side == 0 ? step : nx - 2 - step) * nz + j];
  };
  T ahead[3];  // The next row, read before the barrier.
  const auto fetch = [&](int i) {
    for (int k = 0; k < 3; ++k)
      ahead[k] = works && lane + 32 * k < nz
                     ? inverse[(static_cast<long long>(i) * nz + row) * nz + lane + 32 * k]
                     : T(0);
  };
  const auto product = [&](const auto& value) {
    double sum = 0.0;
    for (int k = 0; k < 3; ++k)
      if (lane + 32 * k < nz) sum += static_cast<double>(ahead[k]) * value(lane + 32 * k);
    return warp_sum(sum);
  };
  const auto tell = [&](double* place, int from, int count, double value) {
    if (works && lane < count)
      *cluster.map_shared_rank(place, static_cast<unsigned>(from + lane)) = value;
  };
  for (int k = threadIdx.x; k < nz; k += blockDim.x) vector[0][k] = b[column_of(0) * nz + k];
  fetch(column_of(0));
  cluster.sync();
  int now = 0;
  for (int step = 0; step < most; ++step) {
    if (step < steps) {
      const double z = product([&](int c) { return vector[now][c]; });
      if (works && lane == 0) x[column_of(step) * nz + row] = z;
      const double moved = works ? coupling(step, row) * z : 0.0;
      if (step + 1 < steps) {
        tell(&vector[now ^ 1][row], side * kSide, kSide,
             (works ? b[column_of(step + 1) * nz + row] : 0.0) - moved);
        fetch(column_of(step + 1));
      } else {  // The middle column hears from both.
        tell(&vector[now ^ 1][row], side * kSide, kSide, moved);
        tell(&other_side[row], (1 - side) * kSide, kSide, moved);
        fetch(mid);
      }
      now ^= 1;
    }
    cluster.sync();
  }
  {
    const double middle =
        product([&](int c) { return b[mid * nz + c] - vector[now][c] - other_side[c]; });
    if (side == 0 && works && lane == 0) x[mid * nz + row] = middle;
    tell(&vector[now ^ 1][row], side * kSide, kSide, middle);
    now ^= 1;
  }
  for (int step = steps - 1; step >= 0; --step) {
    fetch(column_of(step));
    const double z = works ? x[column_of(step) * nz + row] : 0.0;
    cluster.sync();
    const double value = z - product([&](int c) { return coupling(step, c) * vector[now][c]; });
    if (works && lane == 0) x[column_of(step) * nz + row] = value;
    tell(&vector[now ^ 1][row], side * kSide, kSide, value);
    now ^= 1;
  }
  for (int k = steps; k < most; ++k) cluster.sync();
  cluster.sync();
}

/// S_{i+1} = D_{i+1} − c S_i⁻¹ c of both sides.
__global__ void schur_kernel(int nz, const double* couplings, int left, int right, double* blocks,
                             const double* inverse) {
  const int from = blockIdx.x == 0 ? left : right, to = blockIdx.x == 0 ? left + 1 : right - 1;
  const double* c = couplings + min(from, to) * nz;
  for (int k = threadIdx.x; k < nz * nz; k += blockDim.x) {
    const double change =
        c[k / nz] * inverse[static_cast<long long>(from) * nz * nz + k] * c[k % nz];
    atomicAdd(&blocks[static_cast<long long>(to) * nz * nz + k],
              -change);  // Two terms at most, in the middle.
  }
}

/// The block-tridiagonal system of one Newton step and its preconditioner, [nx][nz] nodes.
struct GradientsSystem {
  int nx, nz;
  const double *blocks, *couplings;  ///< [nx][nz][nz]; [nx-1][nz]
  const __nv_bfloat16* laplace;      ///< inverse of the Laplace matrix, rows of inverse_stride()
  const double* b;
  double tolerance;
};
/// Memory of the conjugate gradients.
struct GradientsWork {
  double* vectors;  ///< r, p, z and q [4][nodes]
  double* partial;  ///< sums of the thread blocks [4][blocks]
};

// (d): conjugate gradients. One warp owns each vector entry, and an iteration has four grid
// barriers.
__global__ void __launch_bounds__(kThreads, 1)
    gradients_kernel(GradientsSystem system, GradientsWork work, double* x, int* iterations) {
  extern __shared__ float parts[];
  __shared__ double sums[kThreads / 32];
  const cg::grid_group grid = cg::this_grid();
  const int nx = system.nx, nz = system.nz;
  const double *blocks = system.blocks, *couplings = system.couplings, *b = system.b;
  const int nodes = nx * nz, stride = cuda::inverse_stride(nodes), lane = threadIdx.x & 31,
            warp = threadIdx.x / 32;
  const int first = static_cast<int>(blockIdx.x) * (kThreads / 32) + warp,
            all = static_cast<int>(gridDim.x) * (kThreads / 32);
  double *r = work.vectors, *p = r + nodes, *z = p + nodes, *q = z + nodes;
  int turn = 0;
  // Σ over the grid of one number a warp (lane 0), the same in every block; holds a barrier.
  const auto total = [&](double mine) {
    double* out = work.partial + turn++ % 4 * gridDim.x;
    __syncthreads();
    if (lane == 0) sums[warp] = mine;
    __syncthreads();
    if (threadIdx.x == 0) {
      double sum = 0.0;
      for (const double value : sums) sum += value;
      out[blockIdx.x] = sum;
    }
    grid.sync();
    double sum = 0.0;
    for (int k = lane; k < static_cast<int>(gridDim.x); k += 32) sum += out[k];
    return warp_sum(sum);
  };
  const auto precondition = [&] {
    for (int k = threadIdx.x; k < stride; k += kThreads)
      parts[cuda::interleaved_index(k, stride)] = k < nodes ? static_cast<float>(r[k]) : 0.0f;
    __syncthreads();
    double rz = 0.0;
    for (int row = first; row < nodes; row += all) {
      const double value = cuda::narrow_row_product(
          system.laplace + static_cast<long long>(row) * stride, parts, stride, lane);
      if (lane == 0) z[row] = value;
      rz += value * r[row];
    }
    return total(rz);
  };
  double square = 0.0;
  for (int row = first; row < nodes; row += all) {
    if (lane == 0) {
      r[row] = b[row];
      x[row] = 0.0;
    }
    square += b[row] * b[row];
  }
  const double limit = system.tolerance * system.tolerance * total(square);
  double rz = precondition();
  for (int row = first; row < nodes; row += all)
    if (lane == 0) p[row] = z[row];
  grid.sync();
  int iteration = 1;
  for (; iteration < 500; ++iteration) {
    double pq = 0.0;
    for (int row = first; row < nodes; row += all) {
      const int i = row / nz;
      double sum =
          warp_sum(block_row(blocks + static_cast<long long>(row) * nz, p + i * nz, nz, lane));
      if (i > 0) sum += couplings[row - nz] * p[row - nz];
      if (i + 1 < nx) sum += couplings[row] * p[row + nz];
      if (lane == 0) q[row] = sum;
      pq += sum * p[row];
    }
    const double a = rz / total(pq);
    double rr = 0.0;
    for (int row = first; row < nodes; row += all) {
      const double fresh = r[row] - a * q[row];
      __syncwarp();
      if (lane == 0) {
        x[row] += a * p[row];
        r[row] = fresh;
      }
      rr += fresh * fresh;
    }
    if (total(rr) <= limit) break;
    const double next = precondition();
    for (int row = first; row < nodes; row += all)
      if (lane == 0) p[row] = z[row] + next / rz * p[row];
    rz = next;
    grid.sync();
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) *iterations = iteration;
}

}  // namespace quasi::mosfet
