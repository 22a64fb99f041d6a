
#include <limits>
#include <string>

#include "workers/backend/device/check_cuda.cuh"
#include "workers/backend/error.hpp"
#include "workers/gw/kernels/pole_sums/gpp_fused_cuda.cuh"
#include "workers/gw/kernels/pole_sums/reciprocal.cuh"
#include "workers/gw/kernels/pole_sums/separable_pole.hpp"
#include "workers/gw/physics/plasmon_pole.hpp"

namespace quasi::gw::cuda {
namespace {

using quasi::cuda::check;
using quasi::cuda::check_launch;

// A block makes kRows × (kEnergies · kColumns) elements of T in steps of kDepth plane waves G; each
// of its eight warps a part of 32 × 32. One thread makes P of one (G, G') for all energies of the
// tile a step: 24 bytes of A and ω̃ for four elements of P, each of which then serves kRows complex
// products.
//
// Both factors lie in shared memory as the instruction wants them, lane by lane, real and imaginary
// parts apart: M is packed so once a band, P is stored so by its makers. Products are then loads of
// 16 bytes, instructions of the tensor cores and the sign of Im P.
//
// Two blocks that need the same rows of M are a cluster: each fetches half of a step for both. What
// leaves the cache for the multiprocessors is then half, and where the power limit sets the clock
// that is 5 % of the whole.
constexpr int kRows = 128;
constexpr int kColumns = 16;
constexpr int kEnergies = 4;
constexpr int kDepth = 16;
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kTile = kColumns * kEnergies;
constexpr int kWarpTile = 32;
constexpr int kRowTiles = kRows / kWarpTile;
constexpr int kCluster = 2;
// A warp is at most one step ahead of another of its block: M is copied two steps ahead, P made one
// ahead.
constexpr int kStages = 4;
constexpr int kMadeStages = 3;
constexpr int kQuads = kDepth / 4;       // of plane waves: a lane holds one of each
constexpr int kMStage = kRows * kDepth;  // double2, of M: rows g and g + 8 of one part
constexpr int kPStage = kTile * kDepth;  // double2, of P: plane waves t and t + 4 of one part
constexpr int kShared_bytes = kStages * (kMStage + kPStage) * static_cast<int>(sizeof(double2));

static_assert(kThreads == kDepth * kColumns, "a thread makes one (G, G') a step");
static_assert(kDepth == kColumns, "the last step of a folded sum is the block on the diagonal");
static_assert(kRows * kTile == kWarps * kWarpTile * kWarpTile);

/// C[16][8] += A[16][16] B[16][8] of one warp. With g = lane/4, t = lane%4: a[q] = {A[g][t+4q],
/// A[g+8][t+4q]}, b[q] = B[t+4q][g], c = {C[g][2t], C[g][2t+1], C[g+8][2t], C[g+8][2t+1]}.
__device__ __forceinline__ void multiply_add(double (&c)[4], const double2 (&a)[kQuads],
                                             const double (&b)[kQuads]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, "
      "{%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, {%0,%1,%2,%3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
      : "d"(a[0].x), "d"(a[0].y), "d"(a[1].x), "d"(a[1].y), "d"(a[2].x), "d"(a[2].y), "d"(a[3].x),
        "d"(a[3].y), "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
}

// Barriers in shared memory that copies of whole blocks report to, also those of the other block of
// a cluster.
__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}
__device__ __forceinline__ void start_barrier(std::uint64_t* barrier, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count)
               : "memory");
}
__device__ __forceinline__ void arrive(std::uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
}
__device__ __forceinline__ void arrive_at(std::uint64_t* barrier, unsigned block) {
  asm volatile(
      "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; "
      "mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::"r"(shared_address(barrier)),
      "r"(block)
      : "memory");
}
__device__ __forceinline__ void wait_for(std::uint64_t* barrier, unsigned parity) {
  asm volatile(
      "{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; @done "
      "bra over; bra again; over: }" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}
/// `bytes` from global memory to the same place of kBlocks blocks of the cluster, reported to each
/// one's barrier at the same place.
template <int kBlocks>
__device__ __forceinline__ void copy_block(void* to, const void* from, unsigned bytes,
                                           std::uint64_t* barrier) {
  if constexpr (kBlocks == 1)
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(shared_address(to)),
        "l"(from), "r"(bytes), "r"(shared_address(barrier))
        : "memory");
  else
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1], %2, [%3], %4;" ::"r"(shared_address(to)),
        "l"(from), "r"(bytes), "r"(shared_address(barrier)),
        "h"(static_cast<unsigned short>((1 << kBlocks) - 1))
        : "memory");
}
__device__ __forceinline__ void expect(std::uint64_t* barrier, unsigned bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
}
__device__ __forceinline__ unsigned rank_in_cluster() {
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ __forceinline__ void meet_cluster() {
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}

__device__ __forceinline__ double negated(double x) {
  return __longlong_as_double(__double_as_longlong(x) ^
                              static_cast<long long>(0x8000000000000000ull));
}

/// low ≤ pole ≤ high for numbers ≥ 0, whose bits order as they do: integers leave the FP64 units to
/// the products.
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

/// packed[rows / kRows][steps][row of warps][16 rows][part][quad][lane]: M as lanes of multiply_add
/// hold it, 0 beyond the matrix.
__global__ void pack_rows(const double2* m, std::int64_t row_stride, std::int64_t n_rows,
                          std::int64_t n_g, double2* packed) {
  const std::int64_t step = blockIdx.x, block = blockIdx.y;
  double2* const to = packed + (block * gridDim.x + step) * kMStage;
  for (int at = static_cast<int>(threadIdx.x); at < kMStage; at += kThreads) {
    const int lane = at % 32, quad = at / 32 % kQuads, part = at / (32 * kQuads) % 2,
              tile = at / (64 * kQuads);
    const std::int64_t row = block * kRows + 16 * tile + lane / 4,
                       g = step * kDepth + 4 * quad + lane % 4;
    const auto number = [&](std::int64_t r) {
      if (r >= n_rows || g >= n_g) return 0.0;
      const double2 one = m[r * row_stride + g];
      return part == 0 ? one.x : one.y;
    };
    to[at] = {number(row), number(row + 8)};
  }
}

/// Which tile of T a block makes: rows kRows · row_block of all bands, columns kColumns · column,
/// energies kEnergies · group, in so many steps.
struct Place {
  int row_block, column, group, steps;
};
/// Energies, then columns, then rows: blocks that run together share the columns of A and ω̃, and
/// rows of M, in the cache. Of a folded sum the last columns are the longest: they start first.
__device__ __forceinline__ Place place_of_made(const FusedProduct& in, int all_steps) {
  const int column = static_cast<int>(in.model.folded ? gridDim.y - 1 - blockIdx.y : blockIdx.y);
  return {static_cast<int>(blockIdx.z), column, static_cast<int>(blockIdx.x),
          in.model.folded ? column + 1 : all_steps};
}
/// Clusters, then rows, then columns: a stored P is large, and all rows use it before the next
/// comes. The two blocks of a cluster may have neighbouring columns; they take as many steps as the
/// longer one needs, and the other one's last P is 0.
__device__ __forceinline__ Place place_of_stored(const FusedProduct& in, int all_steps) {
  const int all_rows = static_cast<int>((in.n_left + kRows - 1) / kRows * in.n_bands),
            groups = static_cast<int>((in.n_energies + kEnergies - 1) / kEnergies);
  const int index = static_cast<int>(blockIdx.x) / kCluster, first = index / all_rows * kCluster,
            unit = first + static_cast<int>(blockIdx.x) % kCluster;
  const auto column_of = [&](int one) {
    return in.model.folded ? all_steps - 1 - one / groups : one / groups;
  };
  // Beyond the last: its column once more, and no group, so that nothing is written.
  const bool there = unit < groups * all_steps;
  return {index % all_rows, column_of(there ? unit : unit - 1), there ? unit % groups : groups,
          in.model.folded ? column_of(first) + 1 : all_steps};
}

template <PoleFactor kFactor>
__global__ void __launch_bounds__(kThreads, 1) __cluster_dims__(kCluster, 1, 1)
    fused_product(FusedProduct in) {
  constexpr bool kStored = kFactor == PoleFactor::kStored;
  constexpr int kPStages = kStored ? kStages : kMadeStages;
  extern __shared__ double2 shared[];
  double2* const m_stages = shared;
  double2* const p_stages = shared + kStages * kMStage;
  const std::int64_t n_g = in.model.n_g;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int all_steps = static_cast<int>((n_g + kDepth - 1) / kDepth);
  const auto [row_block, column, group, steps] =
      kStored ? place_of_stored(in, all_steps) : place_of_made(in, all_steps);
  const std::int64_t energy_0 = static_cast<std::int64_t>(group) * kEnergies,
                     column_0 = static_cast<std::int64_t>(column) * kColumns;

  __shared__ double2 dropped[kEnergies];
  __shared__ double x_ry[kEnergies];
  __shared__ std::uint64_t p_ready, m_there[kStages], m_used[kStages];
  if (thread == 0) {
    start_barrier(&p_ready, kWarps);
    for (int i = 0; i < kStages; ++i) {
      start_barrier(&m_there[i], 1);
      start_barrier(&m_used[i], kCluster * kWarps);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (!kStored && thread < kEnergies) {
    const double x =
        in.energies_ry[energy_0 + thread < in.n_energies ? energy_0 + thread : in.n_energies - 1] -
        in.band_ry;
    const PoleInterval interval =
        kFactor == PoleFactor::kOccupied
            ? dropped_occupied(x, in.rules.screened_exchange_cut)
            : dropped_empty(x, in.rules.half_width_ry, in.rules.max_ratio);
    dropped[thread] = {interval.low, interval.high > 0.0 ? interval.high : 0.0};
    x_ry[thread] = x;
  }
  __syncthreads();
  meet_cluster();

  const unsigned rank = rank_in_cluster();
  constexpr int kPart = kMStage / kCluster;  // of a step, that this block copies for all
  const double2* copy_from =
      in.packed + static_cast<std::int64_t>(row_block) * all_steps * kMStage + rank * kPart;
  const int groups = static_cast<int>((in.n_energies + kEnergies - 1) / kEnergies);
  const double2* p_from =
      in.stored +
      (static_cast<std::int64_t>(group < groups ? group : groups - 1) * all_steps + column) *
          all_steps * kPStage;
  const auto copy_m = [&](int step) {
    if (thread != 0 || step >= steps) return;
    const int stage = step % kStages;
    if (step >= kStages) wait_for(&m_used[stage], (step / kStages - 1) & 1);
    expect(&m_there[stage], (kMStage + (kStored ? kPStage : 0)) * sizeof(double2));
    copy_block<kCluster>(m_stages + stage * kMStage + rank * kPart,
                         copy_from + static_cast<std::int64_t>(step) * kMStage,
                         kPart * sizeof(double2), &m_there[stage]);
    if constexpr (kStored)
      copy_block<1>(p_stages + stage * kPStage, p_from + static_cast<std::int64_t>(step) * kPStage,
                    kPStage * sizeof(double2), &m_there[stage]);
  };

  // P: element (G, G') of this thread, loaded a step before it is used; beyond the matrix A = 0. A
  // warp has 8 G × 4 G': its stores then fall into different banks.
  const int make_g = warp / 4 * 8 + lane % 8, make_h = warp % 4 * 4 + lane / 8;
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
  // [part][8 columns][pair of quads][lane][quad of the pair]
  const int make_at =
      2 * ((make_h / 8 * 2 + make_g / 8) * 32 + make_h % 8 * 4 + make_g % 4) + make_g / 4 % 2;
  const auto make_p = [&](int step) {
    double* const to = reinterpret_cast<double*>(p_stages + step % kPStages * kPStage) + make_at;
#pragma unroll
    for (int e = 0; e < kEnergies; ++e) {
      const double f = factor<kFactor == PoleFactor::kOccupied>(x_ry[e], pole_ry, dropped[e]);
      to[2 * e * (kColumns * kQuads * 2)] = f * strength.x;
      to[2 * e * (kColumns * kQuads * 2) + kPStage] = f * strength.y;
    }
    load_element(step + 1);
  };

  double re[2][4][4] = {}, im[2][4][4] = {};
  copy_m(0);
  copy_m(1);
  if constexpr (!kStored) {
    load_element(0);
    make_p(0);
    __syncthreads();
  }
  for (int step = 0; step < steps; ++step) {
    copy_m(step + 2);
    wait_for(&m_there[step % kStages], step / kStages & 1);
    const double2* const m =
        m_stages + step % kStages * kMStage + warp % kRowTiles * (kMStage / kRowTiles) + lane;
    const double2* const p =
        p_stages + step % kPStages * kPStage + warp / kRowTiles * (kPStage / 4) + lane;
    double2 a_re[2][kQuads], a_im[2][kQuads];
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int q = 0; q < kQuads; ++q) {
        a_re[i][q] = m[(2 * i * kQuads + q) * 32];
        a_im[i][q] = m[((2 * i + 1) * kQuads + q) * 32];
      }
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      double b_re[kQuads], b_im[kQuads];
#pragma unroll
      for (int q = 0; q < kQuads; q += 2) {
        const double2 one = p[(n * 2 + q / 2) * 32], other = p[(n * 2 + q / 2) * 32 + kPStage / 2];
        b_re[q] = one.x;
        b_re[q + 1] = one.y;
        b_im[q] = other.x;
        b_im[q + 1] = other.y;
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) multiply_add(re[i][n], a_re[i], b_re);
#pragma unroll
      for (int i = 0; i < 2; ++i) multiply_add(im[i][n], a_re[i], b_im);
#pragma unroll
      for (int i = 0; i < 2; ++i) multiply_add(im[i][n], a_im[i], b_re);
#pragma unroll
      for (double& one : b_im) one = negated(one);
#pragma unroll
      for (int i = 0; i < 2; ++i) multiply_add(re[i][n], a_im[i], b_im);
      if (n == (kStored ? 3 : 1)) {
        if constexpr (!kStored) make_p(step + 1);  // Among products, which hide its latency.
        // This warp's part of P of the next step is there, and it has read what it needs of M (and
        // of a stored P).
        __syncwarp();
        if (!kStored && lane == 0) arrive(&p_ready);
        if (lane < kCluster) arrive_at(&m_used[step % kStages], lane);
      }
    }
    if constexpr (!kStored) wait_for(&p_ready, step & 1);
  }
  meet_cluster();

  // Bands have whole blocks of rows; one of made P is alone.
  const std::int64_t row_blocks = (in.n_left + kRows - 1) / kRows,
                     band = kStored ? row_block / row_blocks : 0,
                     row_0 = (row_block - band * row_blocks) * kRows;
#pragma unroll
  for (int n = 0; n < 4; ++n) {
    const int at = warp / kRowTiles * kWarpTile + n * 8 + 2 * (lane % 4);
    const std::int64_t e = energy_0 + at / kColumns, h = column_0 + at % kColumns;
    if (e >= in.n_energies) continue;
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const std::int64_t row =
            row_0 + warp % kRowTiles * kWarpTile + 16 * i + 8 * half + lane / 4;
        if (row >= in.n_left) continue;
        double2* to = in.t + ((band * in.n_left + row) * in.n_energies + e) * n_g + h;
        if (h < n_g) to[0] = {re[i][n][2 * half], im[i][n][2 * half]};
        if (h + 1 < n_g) to[1] = {re[i][n][2 * half + 1], im[i][n][2 * half + 1]};
      }
  }
}

/// stored[group][column block][step]: P as a step of fused_product reads it, terms of
/// separable_term() in place of energies. Of a folded model what the longest block of a cluster
/// reads.
__global__ void store_terms(PoleModelOnDevice model, StoredTerms terms, double2* stored) {
  const int step = static_cast<int>(blockIdx.x), column = static_cast<int>(blockIdx.y),
            group = static_cast<int>(blockIdx.z);
  if (model.folded && step > column + 1) return;
  const int at = static_cast<int>(threadIdx.x);
  // Of a pair of neighbouring threads the quads of one place in a lane: their stores are one of 16
  // bytes.
  const int g_here = at / 2 % 4 + at % 2 * 4 + at / 128 * 8, h_here = at / 8 % 16;
  const std::int64_t g = static_cast<std::int64_t>(step) * kDepth + g_here,
                     h = static_cast<std::int64_t>(column) * kColumns + h_here;
  const bool there = g < model.n_g && h < model.n_g;
  const double kept = !there ? 0.0 : model.folded ? folded_weight(g, h) : 1.0;
  const double2 strength = there ? model.strength[g * model.n_g + h] : double2{0.0, 0.0};
  const double pole_ry = there ? model.pole_ry[g * model.n_g + h] : kStaticPole_ry;
  double* const to =
      reinterpret_cast<double*>(
          stored +
          ((static_cast<std::int64_t>(group) * gridDim.y + column) * gridDim.x + step) * kPStage) +
      2 * ((h_here / 8 * 2 + g_here / 8) * 32 + h_here % 8 * 4 + g_here % 4) + g_here / 4 % 2;
  for (int e = 0; e < kEnergies; ++e) {
    const std::int64_t k = terms.first + static_cast<std::int64_t>(group) * kEnergies + e;
    const double f = kept == 0.0 || k >= terms.n_terms
                         ? 0.0
                         : kept * separable_term(terms.family, terms.node[k], terms.constant,
                                                 pole_ry, kStaticPole_ry);
    to[2 * e * (kColumns * kQuads * 2)] = f * strength.x;
    to[2 * e * (kColumns * kQuads * 2) + kPStage] = f * strength.y;
  }
}

unsigned blocks_of(std::int64_t n, int size) {
  return static_cast<unsigned>((n + size - 1) / size);
}

}  // namespace

bool fused_product_pays(std::int64_t n_left) {
  int device = 0, major = 0;
  check(cudaGetDevice(&device), "reading the device");
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
        "reading the device");
  return major >= 9 && (n_left + kRows - 1) / kRows * kRows <= n_left + 40;
}

std::int64_t packed_size(std::int64_t n_left, std::int64_t n_g) {
  return static_cast<std::int64_t>(blocks_of(n_left, kRows)) * blocks_of(n_g, kDepth) * kMStage;
}

void pack_for_fused_product(const double2* m, std::int64_t row_stride, std::int64_t n_left,
                            std::int64_t n_g, double2* packed, cudaStream_t stream) {
  pack_rows<<<dim3(blocks_of(n_g, kDepth), blocks_of(n_left, kRows)), kThreads, 0, stream>>>(
      m, row_stride, n_left, n_g, packed);
  check_launch("packing pair products");
}

std::int64_t stored_size(std::int64_t n_g) {
  return static_cast<std::int64_t>(blocks_of(n_g, kDepth)) * blocks_of(n_g, kColumns) * kPStage;
}

void store_separable_terms(const PoleModelOnDevice& model, const StoredTerms& terms,
                           std::int64_t n_groups, double2* stored, cudaStream_t stream) {
  store_terms<<<dim3(blocks_of(model.n_g, kDepth), blocks_of(model.n_g, kColumns),
                     static_cast<unsigned>(n_groups)),
                kThreads, 0, stream>>>(model, terms, stored);
  check_launch("separable terms");
}

void launch_fused_product(const FusedProduct& in, cudaStream_t stream) {
  constexpr const char* kWhat = "fused off-diagonal product";
  const auto kernel = in.factor == PoleFactor::kOccupied ? fused_product<PoleFactor::kOccupied>
                      : in.factor == PoleFactor::kEmpty  ? fused_product<PoleFactor::kEmpty>
                                                         : fused_product<PoleFactor::kStored>;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared_bytes),
        kWhat);
  const std::int64_t groups = blocks_of(in.n_energies, kEnergies),
                     columns = blocks_of(in.model.n_g, kColumns),
                     rows = blocks_of(in.n_left, kRows) * in.n_bands;
  const auto whole_clusters = [](std::int64_t n) {
    return (n + kCluster - 1) / kCluster * kCluster;
  };
  dim3 grid(static_cast<unsigned>(whole_clusters(groups)), static_cast<unsigned>(columns),
            static_cast<unsigned>(rows));
  if (in.factor == PoleFactor::kStored) {
    const std::int64_t blocks = whole_clusters(groups * columns) * rows;
    if (blocks > std::numeric_limits<std::int32_t>::max())
      throw InvalidInput("the off-diagonal sum has " + std::to_string(blocks) +
                         " tiles at once, more than a device counts; use fewer bands at once");
    grid = dim3(static_cast<unsigned>(blocks));
  }
  kernel<<<grid, kThreads, kShared_bytes, stream>>>(in);
  check_launch(kWhat);
}

}  // namespace quasi::gw::cuda
