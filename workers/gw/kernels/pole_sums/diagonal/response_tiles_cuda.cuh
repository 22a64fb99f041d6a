#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "workers/gw/kernels/pole_sums/diagonal/diagonal_tiles_cuda.cuh"
#include "workers/gw/kernels/pole_sums/diagonal/pole_response_cuda.cuh"
#include "workers/gw/kernels/pole_sums/diagonal/response_rows_cuda.cuh"

/// This file moves the rows of a response through tiles of (G, G'): positions of elements, shared
/// memory, and sums over the threads of a block. See docs/theory/gw.md 9.3 for the sums.
namespace quasi::gw::cuda {
namespace {

/// Describes the rows of one group of outer states and one segment of bands that a tile takes
/// together.
struct SegmentChunk {
  std::int32_t first_row;
  std::int32_t n_rows;
  std::int32_t group;
  std::int32_t last_of_group;
  std::int32_t segment;
  std::int32_t last_of_segment;
};
constexpr int kRowsOfSegmentChunk = 16;
/// Sums that the threads of a block add together.
constexpr int kSumsAtATime = 16;

struct ResponseWork {
  PoleChangesOnDevice changes;
  PoleModelOnDevice model;  ///< that of the changes
  double closed_x_ry;
  bool wants_own;
  /// Holds M of each pair in items of 16 bytes: one complex number, or two real ones.
  const double2* items = nullptr;
  std::int64_t items_of_pair = 0;
  const std::int64_t* pair = nullptr;  ///< [n_rows], l·n_right + n
  const double* row = nullptr;         ///< ResponseRow, [n_rows]
  const SegmentChunk* chunk = nullptr;
  std::int32_t n_chunks = 0;
  const Tile* tile = nullptr;
  std::int32_t n_tiles = 0;
  std::int32_t n_groups = 0;
  std::int64_t n_own = 0;     ///< own sums of a group
  std::int64_t n_sums = 0;    ///< own sums, then those of changes, of a group
  double* partial = nullptr;  ///< [n_splits][n_groups][n_sums][n_tiles]
};

/// Returns the position of one of the kSide elements of a thread along an edge of a tile. Real
/// numbers lie in pairs, which a thread reads at once. Neighbouring threads read complex numbers
/// that are neighbours, so that no bank of shared memory is asked twice.
template <typename Rows>
__device__ __forceinline__ int place_in_tile(int thread, int i, int n_threads) {
  return Rows::kReal ? Rows::kSide * thread + i : thread + i * n_threads;
}

/// Holds the position of an element of a thread.
struct ElementAt {
  std::int64_t g, h;
  bool inside;  ///< false: beyond the rows, or above the diagonal of a folded model
};
template <typename Rows>
__device__ ElementAt element_at(const PoleChangesOnDevice& changes, const Tile& tile, int i,
                                int j) {
  const PoleModelOnDevice& model = changes.model;
  const int thread_row = threadIdx.x / kThreadColumns, thread_column = threadIdx.x % kThreadColumns;
  const std::int64_t g =
      std::int64_t{tile.row} * kTileRows<Rows> + place_in_tile<Rows>(thread_row, i, kThreadRows);
  const std::int64_t h = std::int64_t{tile.column} * kTileColumns<Rows> +
                         place_in_tile<Rows>(thread_column, j, kThreadColumns);
  return {g, h, g < changes.rows.end && h < model.n_g && (!model.folded || h <= g)};
}

template <typename Rows>
constexpr int kItemsOfRows = kTileRows<Rows> / (Rows::kReal ? 2 : 1);
template <typename Rows>
constexpr int kItemsOfColumns = kTileColumns<Rows> / (Rows::kReal ? 2 : 1);

/// Lists the arrays that a thread block has in shared memory.
template <typename Rows>
struct ResponseShared {
  double2 m_row[kStages][kRowsOfSegmentChunk][kItemsOfRows<Rows>];
  double2 m_column[kStages][kRowsOfSegmentChunk][kItemsOfColumns<Rows>];
  double row[kStages][kRowsOfSegmentChunk * Rows::kLength];
  double before[kOwnSums][kThreads];  ///< own sums at the end of the segment before
  double reduction[kThreads / 32][kSumsAtATime];
};

/// Starts the copy of the products and numbers of one chunk into a stage. Columns past the end are
/// read at the last item: their elements have no weight.
template <typename Rows>
__device__ void fetch_rows(const ResponseWork& work, const SegmentChunk& chunk, const Tile& tile,
                           int stage, ResponseShared<Rows>& shared) {
  constexpr int kRowItems = kItemsOfRows<Rows>, kPerRow = kRowItems + kItemsOfColumns<Rows>;
  const std::int64_t last = work.items_of_pair - 1,
                     first_of_rows = std::int64_t{tile.row} * kRowItems,
                     first_of_columns = std::int64_t{tile.column} * kItemsOfColumns<Rows>;
  for (int i = threadIdx.x; i < chunk.n_rows * kPerRow; i += kThreads) {
    const int r = i / kPerRow, at = i - r * kPerRow;
    const double2* m = work.items + work.pair[chunk.first_row + r] * work.items_of_pair;
    if (at < kRowItems)
      copy_async(&shared.m_row[stage][r][at], m + min(first_of_rows + at, last), 16);
    else
      copy_async(&shared.m_column[stage][r][at - kRowItems],
                 m + min(first_of_columns + at - kRowItems, last), 16);
  }
  const double* row = work.row + std::int64_t{chunk.first_row} * Rows::kLength;
  for (int i = threadIdx.x; i < chunk.n_rows * Rows::kLength; i += kThreads)
    copy_async(&shared.row[stage][i], row + i, 8);
}

/// Reads the numbers of a thread along one edge of a tile. @param items  of one row of a chunk
template <typename Rows>
__device__ __forceinline__ void read_side(const double2* items, int thread, int n_threads,
                                          typename Rows::Number (&numbers)[Rows::kSide]) {
  if constexpr (Rows::kReal) {
    static_assert(Rows::kSide == 2);
    const double2 both = items[thread];
    numbers[0].re = both.x;
    numbers[1].re = both.y;
  } else {
#pragma unroll
    for (int i = 0; i < Rows::kSide; ++i) {
      const double2 value = items[place_in_tile<Rows>(thread, i, n_threads)];
      numbers[i].re = value.x;
      numbers[i].im = value.y;
    }
  }
}

/// Adds one number of all threads of a warp in a fixed tree, into a slot of the warp.
template <typename Rows>
__device__ __forceinline__ void reduce_in_warp(double sum, int slot, ResponseShared<Rows>& shared) {
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) shared.reduction[threadIdx.x / 32][slot] = sum;
}
/// Adds the first slots of all warps, and stores the sums of a group of outer states.
/// @param first  the first of them among the sums of the group
template <typename Rows>
__device__ void store_slots(const ResponseWork& work, std::int32_t group, std::int64_t first,
                            int count, ResponseShared<Rows>& shared) {
  __syncthreads();
  if (static_cast<int>(threadIdx.x) < count) {
    double sum = 0.0;
    for (int w = 0; w < kThreads / 32; ++w) sum += shared.reduction[w][threadIdx.x];
    const std::int64_t row = std::int64_t{blockIdx.y} * work.n_groups + group;
    work.partial[(row * work.n_sums + first + threadIdx.x) * work.n_tiles + blockIdx.x] = sum;
  }
  __syncthreads();
}

std::vector<SegmentChunk> chunks_of(const OrderedRows& rows) {
  std::vector<SegmentChunk> chunks;
  for (const RowSegment& of : rows.segment)
    for (std::int64_t row = of.begin; row < of.end; row += kRowsOfSegmentChunk) {
      const std::int64_t count = std::min<std::int64_t>(kRowsOfSegmentChunk, of.end - row);
      const bool last = row + count == of.end;
      chunks.push_back({.first_row = static_cast<std::int32_t>(row),
                        .n_rows = static_cast<std::int32_t>(count),
                        .group = of.group,
                        .last_of_group = last && of.segment + 1 == rows.n_segments,
                        .segment = of.segment,
                        .last_of_segment = last});
    }
  return chunks;
}

}  // namespace
}  // namespace quasi::gw::cuda
