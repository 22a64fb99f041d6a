// The linear solvers that a chord iteration may use, on the first CUDA device and on the same
// matrix as mosfet_solvers: renewal, one solve, residual, and the distance from the CPU's solution.
// One JSON line a solver.
//
//   mosfet_solvers_cuda [REPEATS]

#include <cooperative_groups.h>
#include <cusolverDn.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/mosfet_newton_system.hpp"
#include "workers/backend/device/device.hpp"
#include "workers/backend/device/event.cuh"
#include "workers/backend/device/library_handle.cuh"
#include "workers/backend/device/stream.cuh"
#include "workers/mosfet/kernels/electrostatics/cyclic_reduction.cuh"
#include "workers/mosfet/kernels/electrostatics/refresh_cuda.cuh"
#include "workers/mosfet/kernels/electrostatics/row_product.cuh"

namespace quasi::mosfet {
namespace {

namespace cg = cooperative_groups;
using cuda::BlockCyclicReduction;
using quasi::cuda::check;
using quasi::cuda::check_launch;
using quasi::cuda::DeviceBuffer;
using quasi::cuda::Event;
using quasi::cuda::EventTiming;
using quasi::cuda::to_host;
using Vector = std::vector<double>;

constexpr int kThreads = 512,
              kBlocks = 130;  ///< as the product's field kernel on the standard mesh

/// Median milliseconds of one call, of `repeats`.
double ms(cudaStream_t stream, int repeats, const std::function<void()>& work) {
  const Event from(EventTiming::kOn), to(EventTiming::kOn);
  std::vector<float> each;
  work();
  for (int k = 0; k < repeats; ++k) {
    from.record(stream);
    work();
    to.record(stream);
    to.synchronize("timing");
    each.push_back(static_cast<float>(1e3 * to.seconds_since(from)));
  }
  std::nth_element(each.begin(), each.begin() + repeats / 2, each.end());
  return each[static_cast<std::size_t>(repeats) / 2];
}

template <typename... Arguments>
void launch_together(void (*kernel)(Arguments...), int blocks, std::size_t shared,
                     cudaStream_t stream, Arguments... arguments) {
  void* list[] = {&arguments...};
  check(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(kernel),
                                    dim3(static_cast<unsigned>(blocks)), dim3(kThreads), list,
                                    shared, stream),
        "cooperative kernel");
}

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
    parts[cuda::part_place(k, stride)] = k < nodes ? static_cast<float>(b[k]) : 0.0f;
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

// (d): conjugate gradients, every vector entry in the hands of one warp; four grid barriers an
// iteration.
__global__ void __launch_bounds__(kThreads, 1)
    gradients_kernel(int nx, int nz, const double* blocks, const double* couplings,
                     const __nv_bfloat16* laplace, const double* b, double tolerance, double* x,
                     double* vectors, double* partial, int* iterations) {
  extern __shared__ float parts[];
  __shared__ double sums[kThreads / 32];
  const cg::grid_group grid = cg::this_grid();
  const int nodes = nx * nz, stride = cuda::inverse_stride(nodes), lane = threadIdx.x & 31,
            warp = threadIdx.x / 32;
  const int first = static_cast<int>(blockIdx.x) * (kThreads / 32) + warp,
            all = static_cast<int>(gridDim.x) * (kThreads / 32);
  double *r = vectors, *p = vectors + nodes, *z = p + nodes, *q = z + nodes;
  int turn = 0;
  // Σ over the grid of one number a warp (lane 0), the same in every block; holds a barrier.
  const auto total = [&](double mine) {
    double* out = partial + turn++ % 4 * gridDim.x;
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
      parts[cuda::part_place(k, stride)] = k < nodes ? static_cast<float>(r[k]) : 0.0f;
    __syncthreads();
    double rz = 0.0;
    for (int row = first; row < nodes; row += all) {
      const double value = cuda::narrow_row_product(laplace + static_cast<long long>(row) * stride,
                                                    parts, stride, lane);
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
  const double limit = tolerance * tolerance * total(square);
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

template <typename T>
DeviceBuffer<T> narrowed(const DeviceBuffer<double>& from) {
  const Vector wide = to_host(from, "narrow copy");
  DeviceBuffer<T> narrow(std::vector<T>(wide.begin(), wide.end()), "narrow copy");
  check(cudaStreamSynchronize(nullptr), "narrow copy");
  return narrow;
}

class Comparison {
 public:
  Comparison(int repeats)
      : repeats_(repeats),
        system_(standard_newton_system()),
        nx_(system_.matrix.nx()),
        nz_(system_.matrix.nz()),
        nodes_(nx_ * nz_),
        blocks_(system_.matrix.blocks(), "blocks"),
        couplings_(system_.matrix.couplings(), "couplings"),
        b_(system_.right_side, "right side"),
        x_(static_cast<std::size_t>(nodes_), "solution"),
        expected_(system_.right_side) {
    system_.matrix.solve(expected_.data());
    check(cudaStreamSynchronize(nullptr), "system");
  }

  void run() {
    launch_together(barriers_kernel, kBlocks, 0, stream_.get(), 1);
    const auto barriers = [&](int n) {
      return ms(stream_.get(), repeats_,
                [&] { launch_together(barriers_kernel, kBlocks, 0, stream_.get(), n); });
    };
    const double none = barriers(0), many = barriers(100);
    std::cout << nlohmann::json{{"cooperative_launch_us", 1e3 * none},
                                {"grid_barrier_us", 10.0 * (many - none)}}
                     .dump()
              << std::endl;
    explicit_inverse();
    cyclic_reduction();
    block_thomas();
    gradients();
  }

 private:
  void report(const char* name, double renew_ms, double solve_ms, double bytes,
              const std::string& chain) {
    const Vector x = to_host(x_, "solution");
    double distance = 0.0, scale = 0.0;
    for (std::size_t k = 0; k < x.size(); ++k) {
      distance = std::max(distance, std::fabs(x[k] - expected_[k]));
      scale = std::max(scale, std::fabs(expected_[k]));
    }
    std::cout << nlohmann::json{{"solver", name},
                                {"renew_ms", renew_ms},
                                {"solve_us", 1e3 * solve_ms},
                                {"residual", system_.residual(x)},
                                {"relative_error", distance / scale},
                                {"bytes_a_solve", bytes},
                                {"chain", chain}}
                     .dump()
              << std::endl;
    x_.zero("solution");
    check(cudaStreamSynchronize(nullptr), "solution");
  }
  double solve_ms(const std::function<void()>& work) { return ms(stream_.get(), repeats_, work); }

  /// The inverse of a matrix given as blocks and couplings: one triangle by cuSOLVER. @return
  /// milliseconds
  double invert(const DeviceBuffer<double>& blocks, const DeviceBuffer<double>& couplings,
                DeviceBuffer<double>* dense) {
    *dense = {static_cast<std::size_t>(nodes_) * nodes_, "inverse"};
    const auto lower = CUBLAS_FILL_MODE_LOWER;
    int factor = 0, inverse = 0;
    check(cusolverDnDpotrf_bufferSize(solver_.get(), lower, nodes_, dense->data(), nodes_, &factor),
          "Cholesky factor");
    check(
        cusolverDnDpotri_bufferSize(solver_.get(), lower, nodes_, dense->data(), nodes_, &inverse),
        "inverse");
    DeviceBuffer<double> workspace(static_cast<std::size_t>(std::max(factor, inverse)),
                                   "workspace");
    DeviceBuffer<int> info(2, "factor status");
    return ms(stream_.get(), 3, [&] {
      dense_kernel<<<static_cast<unsigned>(nodes_), 256, 0, stream_.get()>>>(
          nz_, nodes_, blocks.data(), couplings.data(), dense->data());
      check(cusolverDnDpotrf(solver_.get(), lower, nodes_, dense->data(), nodes_, workspace.data(),
                             static_cast<int>(workspace.size()), info.data()),
            "Cholesky factor");
      check(cusolverDnDpotri(solver_.get(), lower, nodes_, dense->data(), nodes_, workspace.data(),
                             static_cast<int>(workspace.size()), info.data() + 1),
            "inverse");
    });
  }
  DeviceBuffer<__nv_bfloat16> bfloat(const DeviceBuffer<double>& dense) {
    DeviceBuffer<__nv_bfloat16> narrow(
        static_cast<std::size_t>(nodes_) * cuda::inverse_stride(nodes_), "narrow inverse");
    cuda::narrow_inverse_kernel<<<static_cast<unsigned>(nodes_), 256, 0, stream_.get()>>>(
        nodes_, dense.data(), narrow.data());
    check(cudaStreamSynchronize(stream_.get()), "narrow inverse");
    return narrow;
  }
  std::size_t parts_bytes() const {
    return sizeof(float) * static_cast<std::size_t>(cuda::inverse_stride(nodes_));
  }

  void explicit_inverse() {
    DeviceBuffer<double> dense;
    const double renew = invert(blocks_, couplings_, &dense);
    const double one = 1.0, zero = 0.0, full = 8.0 * nodes_ * nodes_;
    blas_.set_stream(stream_.get());
    report("(a) explicit inverse, FP64, cublasDsymv", renew, solve_ms([&] {
             check(cublasDsymv(blas_.get(), CUBLAS_FILL_MODE_LOWER, nodes_, &one, dense.data(),
                               nodes_, b_.data(), 1, &zero, x_.data(), 1),
                   "symv");
           }),
           0.5 * full, "one product");
    const DeviceBuffer<__nv_bfloat16> narrow = bfloat(dense);
    const auto product = [&] {
      return solve_ms([&] {
        narrow_product_kernel<<<kBlocks, kThreads, parts_bytes(), stream_.get()>>>(
            nodes_, narrow.data(), b_.data(), x_.data());
        check_launch("product");
      });
    };
    report("(a) explicit inverse, bfloat16 (the product's)", renew, product(), 0.25 * full,
           "one product");
    BlockCyclicReduction reduction(nx_, nz_);
    DeviceBuffer<double> rows(static_cast<std::size_t>(nodes_) * nodes_, "inverse");
    const double by_reduction = ms(stream_.get(), 5, [&] {
      reduction.factorise(blocks_.data(), couplings_.data(), stream_.get());
      reduction.invert(rows.data(), stream_.get());
    });
    report("(a) explicit inverse, FP64, cublasDgemv, renewed by (b)", by_reduction, solve_ms([&] {
             check(cublasDgemv(blas_.get(), CUBLAS_OP_T, nodes_, nodes_, &one, rows.data(), nodes_,
                               b_.data(), 1, &zero, x_.data(), 1),
                   "gemv");
           }),
           full, "one product");
  }

  void cyclic_reduction() {
    BlockCyclicReduction reduction(nx_, nz_);
    const double renew = ms(stream_.get(), 5, [&] {
      reduction.factorise(blocks_.data(), couplings_.data(), stream_.get());
    });
    solve_reduced<double>(reduction, renew, "(b) block cyclic reduction, FP64");
    solve_reduced<float>(reduction, renew, "(b) block cyclic reduction, factors in FP32");
  }
  template <typename T>
  void solve_reduced(const BlockCyclicReduction& reduction, double renew, const char* name) {
    std::vector<DeviceBuffer<T>> kept;
    const auto copy = [&](const DeviceBuffer<double>& from) {
      kept.push_back(narrowed<T>(from));
      return static_cast<const T*>(kept.back().data());
    };
    Reduced<T> m{};
    m.levels = reduction.levels();
    m.nz = nz_;
    double bytes = 0.0;
    for (int k = 0; k < m.levels; ++k) {
      const auto& l = reduction.level(k);
      m.level[k] = {l.n,           copy(l.inverse),   copy(l.left),
                    copy(l.right), copy(l.left_rows), copy(l.right_rows)};
      bytes += sizeof(T) * 5.0 * (l.n / 2) * nz_ * nz_;
    }
    DeviceBuffer<double> r(static_cast<std::size_t>(nodes_), "right side");
    const double solve = solve_ms([&] {
      check(cudaMemcpyAsync(r.data(), b_.data(), sizeof(double) * nodes_, cudaMemcpyDeviceToDevice,
                            stream_.get()),
            "right side");
      launch_together(cyclic_kernel<T>, kBlocks, 0, stream_.get(), m, r.data(), x_.data());
    });
    report(name, renew, solve, bytes,
           std::to_string(2 * m.levels - 1) + " batches of products, a grid barrier apart");
  }

  void block_thomas() {
    DeviceBuffer<double> schur(static_cast<std::size_t>(nodes_) * nz_, "Schur complements"),
        inverse(static_cast<std::size_t>(nodes_) * nz_, "inverses");
    DeviceBuffer<double> factors(static_cast<std::size_t>(2) * nz_ * nz_, "factors");
    DeviceBuffer<int> pivots(static_cast<std::size_t>(2) * nz_, "pivots"), info(2, "factor status");
    const std::size_t square = static_cast<std::size_t>(nz_) * nz_;
    const int mid = nx_ / 2;
    std::vector<double*> table;
    for (int step = 0; step <= mid; ++step) {
      for (const int i : {step, nx_ - 1 - step}) table.push_back(inverse.data() + i * square);
    }
    DeviceBuffer<double*> out(table, "pointers"),
        in(std::vector<double*>{factors.data(), factors.data() + square}, "pointers");
    check(cudaStreamSynchronize(nullptr), "pointers");
    blas_.set_stream(stream_.get());
    const double renew = ms(stream_.get(), 3, [&] {
      check(cudaMemcpyAsync(schur.data(), blocks_.data(), sizeof(double) * nodes_ * nz_,
                            cudaMemcpyDeviceToDevice, stream_.get()),
            "blocks");
      for (int step = 0; step <= mid; ++step) {
        const int left = step, right = nx_ - 1 - step, batch = left == right ? 1 : 2;
        for (int k = 0; k < batch; ++k)
          check(cudaMemcpyAsync(factors.data() + k * square,
                                schur.data() + (k == 0 ? left : right) * square,
                                sizeof(double) * square, cudaMemcpyDeviceToDevice, stream_.get()),
                "Schur complement");
        check(cublasDgetrfBatched(blas_.get(), nz_, in.data(), nz_, pivots.data(), info.data(),
                                  batch),
              "factors");
        check(cublasDgetriBatched(blas_.get(), nz_, in.data(), nz_, pivots.data(),
                                  out.data() + 2 * step, nz_, info.data(), batch),
              "inverses");
        if (step < mid)
          schur_kernel<<<2, 256, 0, stream_.get()>>>(nz_, couplings_.data(), left, right,
                                                     schur.data(), inverse.data());
      }
      check_launch("block elimination");
    });
    thomas<double>(inverse, renew, "(c) block Thomas in one cluster, FP64");
    const DeviceBuffer<float> narrow = narrowed<float>(inverse);
    thomas<float>(narrow, renew, "(c) block Thomas in one cluster, factors in FP32");
  }
  template <typename T>
  void thomas(const DeviceBuffer<T>& inverse, double renew, const char* name) {
    check(cudaFuncSetAttribute(thomas_kernel<T>, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
          "cluster of 16");
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(kCluster);
    config.blockDim = dim3(32 * kRowsEach);
    config.stream = stream_.get();
    cudaLaunchAttribute cluster{};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = kCluster;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    config.attrs = &cluster;
    config.numAttrs = 1;
    const T* factors = inverse.data();
    const double* couplings = couplings_.data();
    const double* b = b_.data();
    const double solve = solve_ms([&] {
      check(
          cudaLaunchKernelEx(&config, thomas_kernel<T>, nx_, nz_, factors, couplings, b, x_.data()),
          "cluster");
    });
    report(name, renew, solve, 2.0 * sizeof(T) * nodes_ * nz_,
           std::to_string(nx_) + " products of " + std::to_string(nz_) +
               " rows, a cluster barrier apart");
  }

  void gradients() {
    DeviceBuffer<double> dense;
    {
      const DeviceBuffer<double> blocks(system_.laplace.blocks(), "Laplacian"),
          couplings(system_.laplace.couplings(), "Laplacian");
      check(cudaStreamSynchronize(nullptr), "Laplacian");
      invert(blocks, couplings, &dense);
    }
    const DeviceBuffer<__nv_bfloat16> laplace = bfloat(dense);
    DeviceBuffer<double> vectors(4 * static_cast<std::size_t>(nodes_), "vectors"),
        partial(4 * kBlocks, "sums");
    DeviceBuffer<int> iterations(1, "iterations");
    for (const double tolerance : {1e-3, 1e-8}) {
      const double solve = solve_ms([&] {
        launch_together(gradients_kernel, kBlocks, parts_bytes(), stream_.get(), nx_, nz_,
                        static_cast<const double*>(blocks_.data()),
                        static_cast<const double*>(couplings_.data()),
                        static_cast<const __nv_bfloat16*>(laplace.data()),
                        static_cast<const double*>(b_.data()), tolerance, x_.data(), vectors.data(),
                        partial.data(), iterations.data());
      });
      const int count = to_host(iterations, "iterations")[0];
      report(tolerance > 1e-5 ? "(d) conjugate gradients after Laplace in bfloat16, to 1e-3"
                              : "(d) conjugate gradients after Laplace in bfloat16, to 1e-8",
             0.0, solve, count * (2.0 * nodes_ * nodes_ + 8.0 * nodes_ * nz_),
             std::to_string(count) + " iterations, four grid barriers each");
    }
  }

  int repeats_;
  NewtonSystem system_;
  int nx_, nz_, nodes_;
  quasi::cuda::Stream stream_{quasi::cuda::StreamPriority::kUrgent};
  quasi::cuda::CublasHandle blas_{nullptr};
  quasi::cuda::CusolverHandle solver_{stream_.get()};
  DeviceBuffer<double> blocks_, couplings_, b_, x_;
  Vector expected_;
};

}  // namespace
}  // namespace quasi::mosfet

int main(int argc, char** argv) {
  try {
    quasi::use_device(quasi::find_device("cuda:0"));
    quasi::mosfet::Comparison(argc > 1 ? std::atoi(argv[1]) : 101).run();
  } catch (const std::exception& failure) {
    std::cerr << "error: " << failure.what() << '\n';
    return 1;
  }
  return 0;
}
