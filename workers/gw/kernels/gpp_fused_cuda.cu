#include <cuda_pipeline.h>
#include <nv/target>

#include "workers/backend/check_cuda.cuh"
#include "workers/gw/kernels/gpp_fused_cuda.cuh"
#include "workers/gw/kernels/reciprocal.cuh"
#include "workers/gw/physics/plasmon_pole.hpp"

namespace quasi::gw::cuda {
namespace {

using quasi::cuda::check;
using quasi::cuda::check_launch;

// A block makes kRows × (kEnergies · kColumns) elements of T in steps of kDepth plane waves G; each of its
// eight warps a part of 32 × 32. One thread makes P of one (G, G') for all energies of the tile a step:
// 24 bytes of A and ω̃ for four elements of P, each of which then serves kRows complex products.
constexpr int kRows = 128;
constexpr int kColumns = 16;
constexpr int kEnergies = 4;
constexpr int kDepth = 16;
constexpr int kThreads = 256;
constexpr int kStages = 3;
constexpr int kTile = kColumns * kEnergies;
constexpr int kWarpTile = 32;
// Rows of shared memory begin in banks such that the eight threads served at a time hit all of them once.
constexpr int kMStride = kDepth + 4;
constexpr int kPStride = kTile + 2;
constexpr int kPPart = kDepth / 2 * kPStride;  // real parts, then imaginary ones; pairs (G, G + 4) of one step of eight
constexpr int kMStage = kRows * kMStride;
constexpr int kPStage = 2 * kPPart;
constexpr int kShared_bytes = (kStages * kMStage + 2 * kPStage) * static_cast<int>(sizeof(double2));

static_assert(kThreads == kDepth * kColumns, "a thread makes one (G, G') a step");
static_assert(kDepth == kColumns, "the last step of a folded sum is the block on the diagonal");
static_assert(kRows * kTile == kThreads / 32 * kWarpTile * kWarpTile);

/// C[16][8] += A[16][8] B[8][8] of one warp. With g = lane/4, t = lane%4: a = {A[g][t], A[g+8][t],
/// A[g][t+4], A[g+8][t+4]}, b = {B[t][g], B[t+4][g]}, c = {C[g][2t], C[g][2t+1], C[g+8][2t], C[g+8][2t+1]}.
///
/// A complex product of eight rows is two of these: rows g are real parts and rows g + 8 imaginary ones, A = [Re M; Im M] times
/// Re P and then [−Im M; Re M] times Im P. Both parts of a number of M lie side by side in memory and in registers, and nothing
/// has to be moved between them.
__device__ __forceinline__ void multiply_add(double (&c)[4], double a0, double a1, double a2, double a3, double2 b) {
  // The largest product that compute capability 8 has is [8][4] times [4][8], with the same places in the lanes.
  [[maybe_unused]] const auto quarter = [](double& c0, double& c1, double a, double b_part) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+d"(c0), "+d"(c1) : "d"(a), "d"(b_part));
  };
  NV_IF_ELSE_TARGET(
      NV_PROVIDES_SM_90,
      (asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
           : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
           : "d"(a0), "d"(a1), "d"(a2), "d"(a3), "d"(b.x), "d"(b.y));),
      (quarter(c[0], c[1], a0, b.x); quarter(c[2], c[3], a1, b.x); quarter(c[0], c[1], a2, b.y); quarter(c[2], c[3], a3, b.y);))
}

__device__ __forceinline__ double negated(double x) {
  return __longlong_as_double(__double_as_longlong(x) ^ static_cast<long long>(0x8000000000000000ull));
}

/// low ≤ pole ≤ high for numbers ≥ 0, whose bits order as they do: integers leave the FP64 units to the products.
__device__ __forceinline__ bool within(double pole_ry, double2 interval) {
  const long long pole = __double_as_longlong(pole_ry);
  return (pole >= __double_as_longlong(interval.x)) & (pole <= __double_as_longlong(interval.y));
}

/// pole_quotient_occupied or …_empty, their rule as an interval of poles: four FP64 instructions.
template <bool kOccupied>
__device__ __forceinline__ double factor(double x_ry, double pole_ry, double2 dropped_interval) {
  const bool dropped = within(pole_ry, dropped_interval);
  if constexpr (kOccupied) {
    return reciprocal_of_normal(x_ry + (dropped ? negated(pole_ry) : pole_ry));
  } else {
    const double f = reciprocal_of_normal(dropped ? 1.0 : x_ry - pole_ry);
    return dropped ? 0.0 : f;
  }
}

template <bool kOccupied>
__global__ void __launch_bounds__(kThreads, 1) fused_product(FusedProduct in) {
  extern __shared__ double2 shared[];
  double2* const m_stages = shared;
  double2* const p_stages = shared + kStages * kMStage;
  const std::int64_t n_g = in.model.n_g;
  const std::int64_t energy_0 = static_cast<std::int64_t>(blockIdx.x) * kEnergies;
  // Of a folded sum the last columns are the longest: they start first.
  const std::int64_t column_0 = static_cast<std::int64_t>(in.model.folded ? gridDim.y - 1 - blockIdx.y : blockIdx.y) * kColumns;
  const std::int64_t row_0 = static_cast<std::int64_t>(blockIdx.z) * kRows;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int group = lane / 4, in_group = lane % 4;
  const int warp_row = warp % 4 * kWarpTile, warp_column = warp / 4 * kWarpTile;
  const int steps = static_cast<int>(in.model.folded ? column_0 / kColumns + 1 : (n_g + kDepth - 1) / kDepth);

  double x_ry[kEnergies];
#pragma unroll
  for (int e = 0; e < kEnergies; ++e)
    x_ry[e] = in.energies_ry[energy_0 + e < in.n_energies ? energy_0 + e : in.n_energies - 1] - in.band_ry;
  __shared__ double2 dropped[kEnergies];
  if (thread < kEnergies) {
    const double x = in.energies_ry[energy_0 + thread < in.n_energies ? energy_0 + thread : in.n_energies - 1] - in.band_ry;
    const PoleInterval interval = kOccupied ? dropped_occupied(x, in.rules.screened_exchange_cut)
                                            : dropped_empty(x, in.rules.half_width_ry, in.rules.max_ratio);
    dropped[thread] = {interval.low, interval.high > 0.0 ? interval.high : 0.0};
  }
  __syncthreads();

  // M: 16 threads copy the plane waves of a step of one row, 16 rows at a time. Rows beyond the last are 0.
  constexpr int kRowsAtOnce = kThreads / kDepth;
  const int copy_g = thread % kDepth, copy_row = thread / kDepth;
  const double2* copy_from = in.products + (row_0 + copy_row) * in.row_stride + copy_g;
  const int copy_rows = static_cast<int>((in.n_left - row_0 - copy_row + kRowsAtOnce - 1) / kRowsAtOnce);
  const auto copy_m = [&](int step) {
    if (step < steps) {
      double2* to = m_stages + step % kStages * kMStage + copy_row * kMStride + copy_g;
      const bool inside = step * kDepth + copy_g < static_cast<int>(n_g);
#pragma unroll
      for (int i = 0; i < kRows / kRowsAtOnce; ++i) {
        const bool there = inside && i < copy_rows;
        __pipeline_memcpy_async(to + i * kRowsAtOnce * kMStride, there ? copy_from + i * kRowsAtOnce * in.row_stride : in.products,
                                sizeof(double2), there ? 0 : sizeof(double2));
      }
      copy_from += kDepth;
    }
    __pipeline_commit();
  };

  // P: element (G, G') of this thread, loaded a step before it is used; beyond the matrix A = 0.
  const int make_g = thread / kColumns, make_h = thread % kColumns;
  const bool column_there = column_0 + make_h < n_g;
  std::int64_t element_at = make_g * n_g + column_0 + make_h;
  double2 strength{0.0, 0.0};
  double pole_ry = kStaticPole_ry;
  const auto load_element = [&](int step) {
    const bool there = column_there && step * kDepth + make_g < static_cast<int>(n_g);
    strength = there ? in.model.strength[element_at] : double2{0.0, 0.0};
    pole_ry = there ? in.model.pole_ry[element_at] : kStaticPole_ry;
    element_at += kDepth * n_g;
    if (in.model.folded && step + 1 == steps) {
      const double kept = folded_weight(make_g, make_h);
      strength = {kept * strength.x, kept * strength.y};
    }
  };
  double* const p_doubles = reinterpret_cast<double*>(p_stages);
  const int make_at = 2 * ((make_g / 8 * 4 + make_g % 4) * kPStride + make_h) + make_g / 4 % 2;
  const auto make_p = [&](int step) {
    double* to = p_doubles + step % 2 * 2 * kPStage + make_at;
#pragma unroll
    for (int e = 0; e < kEnergies; ++e) {
      const double f = factor<kOccupied>(x_ry[e], pole_ry, dropped[e]);
      to[2 * e * kColumns] = f * strength.x;
      to[2 * (kPPart + e * kColumns)] = f * strength.y;
    }
    load_element(step + 1);
  };

  double sum[4][4][4] = {};
  copy_m(0);
  copy_m(1);
  load_element(0);
  make_p(0);
  for (int step = 0; step < steps; ++step) {
    __pipeline_wait_prior(1);
    __syncthreads();
    copy_m(step + 2);
    const double2* m = m_stages + step % kStages * kMStage + (warp_row + group) * kMStride + in_group;
    const double2* p = p_stages + step % 2 * kPStage + in_group * kPStride + warp_column + group;
#pragma unroll
    for (int k = 0; k < kDepth; k += 8) {
      double2 b_re[4], b_im[4];
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        b_re[n] = p[k / 2 * kPStride + n * 8];
        b_im[n] = p[kPPart + k / 2 * kPStride + n * 8];
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const double2 a = m[i * 8 * kMStride + k], next = m[i * 8 * kMStride + k + 4];
        const double minus = negated(a.y), next_minus = negated(next.y);
#pragma unroll
        for (int n = 0; n < 4; ++n) multiply_add(sum[i][n], a.x, a.y, next.x, next.y, b_re[n]);
#pragma unroll
        for (int n = 0; n < 4; ++n) multiply_add(sum[i][n], minus, a.x, next_minus, next.x, b_im[n]);
        if (k == 0 && i == 1) make_p(step + 1);  // Among products, which hide its latency: 2 % of the whole.
      }
    }
  }

#pragma unroll
  for (int n = 0; n < 4; ++n) {
    const int column = warp_column + n * 8 + 2 * in_group;
    const std::int64_t e = energy_0 + column / kColumns, h = column_0 + column % kColumns;
    if (e >= in.n_energies) continue;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::int64_t row = row_0 + warp_row + i * 8 + group;
      if (row >= in.n_left) continue;
      double2* to = in.t + (row * in.n_energies + e) * n_g + h;
      if (h < n_g) to[0] = {sum[i][n][0], sum[i][n][2]};
      if (h + 1 < n_g) to[1] = {sum[i][n][1], sum[i][n][3]};
    }
  }
}

}  // namespace

bool fused_product_pays(std::int64_t n_left) { return (n_left + kRows - 1) / kRows * kRows <= n_left + 40; }

void launch_fused_product(const FusedProduct& in, cudaStream_t stream) {
  constexpr const char* kWhat = "fused off-diagonal product";
  const auto kernel = in.occupied ? fused_product<true> : fused_product<false>;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared_bytes), kWhat);
  const auto blocks = [](std::int64_t n, int size) { return static_cast<unsigned>((n + size - 1) / size); };
  // Energies first: blocks that run together share the columns of A and ω̃, and rows of M, in the cache.
  const dim3 grid(blocks(in.n_energies, kEnergies), blocks(in.model.n_g, kColumns), blocks(in.n_left, kRows));
  kernel<<<grid, kThreads, kShared_bytes, stream>>>(in);
  check_launch(kWhat);
}

}  // namespace quasi::gw::cuda
