#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "workers/gw/kernels/pole_sums/offdiagonal/gpp_fused_cuda.cuh"
#include "workers/gw/kernels/pole_sums/reciprocal.cuh"
#include "workers/gw/physics/plasmon_pole.hpp"

/// Sizes, tensor-core products, barriers and copies of the fused product (gpp_fused_cuda.cu).
/// See docs/theory/gw.md 7 for the equations.
namespace quasi::gw::cuda::fused {

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

/// Barriers in shared memory to which copies of whole blocks report, also copies of the other block
/// of a cluster.
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

/// The tile of T that a block makes: rows from kRows · row_block of all bands, columns from
/// kColumns · column and energies from kEnergies · group, and its number of steps.
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

}  // namespace quasi::gw::cuda::fused
