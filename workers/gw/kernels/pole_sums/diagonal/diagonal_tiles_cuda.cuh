#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <cuda_runtime.h>

#include "workers/gw/kernels/pole_sums/diagonal/gpp_diagonal_cuda.cuh"

/// Tiles of (G, G') through which rows (l, n) of pair products pass, for the kernels that sum over
/// plasmon-pole models. `Rows` has kSide, kLength and kSums; `Work` has model, products, pair and
/// row. See docs/theory/gw.md 6.2 for the sums.
namespace quasi::gw::cuda {
namespace {

// A block is 16 × 8 threads, each with kSide × kSide elements. Lanes of a warp read 4 rows and 8
// neighbouring columns: no bank conflicts. Smooth rows take 4 × 4 elements, 96 registers of model
// a thread; three blocks fit on an SM.
constexpr int kThreadRows = 16;
constexpr int kThreadColumns = 8;
constexpr int kThreads = kThreadRows * kThreadColumns;
constexpr int kRowsPerChunk = 8;
constexpr int kStages = 2;
constexpr int kBlocksPerSm = 3;

/// Rows (l, n) that pass through a tile together; chunks never mix outer states.
struct Chunk {
  std::int32_t first_row;
  std::int32_t n_rows;
  std::int32_t left;
  std::int32_t last_of_left;
};

struct Tile {
  std::int32_t row;
  std::int32_t column;
};

__device__ void copy_async(void* to, const void* from, int bytes) {
  const auto shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
  if (bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(from));
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(shared), "l"(from));
}
__device__ void commit_copies() { asm volatile("cp.async.commit_group;"); }
__device__ void wait_for_all_but_one() { asm volatile("cp.async.wait_group 1;"); }

template <typename Rows>
constexpr int kTileRows = kThreadRows* Rows::kSide;
template <typename Rows>
constexpr int kTileColumns = kThreadColumns* Rows::kSide;

template <typename Rows>
struct SharedRows {
  double2 m_row[kStages][kRowsPerChunk][kTileRows<Rows>];
  double2 m_column[kStages][kRowsPerChunk][kTileColumns<Rows>];
  double row[kStages][kRowsPerChunk * Rows::kLength];
  double reduction[kThreads / 32][Rows::kSums];
};

/// Starts the copy of one chunk's products and row numbers into a stage. Columns past the end are
/// read at the last one: their elements have A = 0.
template <typename Rows, typename Work>
__device__ void fetch(const Work& work, const Chunk& chunk, std::int64_t first_g,
                      std::int64_t first_h, int stage, SharedRows<Rows>& shared) {
  constexpr int kPerRow = kTileRows<Rows> + kTileColumns<Rows>;
  const std::int64_t last = work.model.n_g - 1;
  for (int i = threadIdx.x; i < chunk.n_rows * kPerRow; i += kThreads) {
    const int r = i / kPerRow;
    const int at = i - r * kPerRow;
    const double2* m = work.products + work.pair[chunk.first_row + r] * work.model.n_g;
    if (at < kTileRows<Rows>)
      copy_async(&shared.m_row[stage][r][at], m + min(first_g + at, last), 16);
    else
      copy_async(&shared.m_column[stage][r][at - kTileRows<Rows>],
                 m + min(first_h + at - kTileRows<Rows>, last), 16);
  }
  const double* row = work.row + std::int64_t{chunk.first_row} * Rows::kLength;
  for (int i = threadIdx.x; i < chunk.n_rows * Rows::kLength; i += kThreads)
    copy_async(&shared.row[stage][i], row + i, 8);
}

/// sum[i] = Σ_splits Σ_tiles partial[split][i][tile], in fixed order. One block an i.
__global__ void add_partials(const double* partial, std::int64_t n_splits, std::int64_t n_sums,
                             std::int64_t n_tiles, double* sum) {
  __shared__ double lane[256];
  double mine = 0.0;
  for (std::int64_t split = 0; split < n_splits; ++split)
    for (std::int64_t t = threadIdx.x; t < n_tiles; t += blockDim.x)
      mine += partial[(split * n_sums + blockIdx.x) * n_tiles + t];
  lane[threadIdx.x] = mine;
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) lane[threadIdx.x] += lane[threadIdx.x + half];
  }
  if (threadIdx.x == 0) sum[blockIdx.x] = lane[0];
}

template <typename Rows>
std::vector<Tile> tiles_of(const PoleModelOnDevice& model) {
  std::vector<Tile> tiles;
  for (std::int64_t row = 0; row * kTileRows<Rows> < model.n_g; ++row)
    for (std::int64_t column = 0; column * kTileColumns<Rows> < model.n_g; ++column)
      if (!model.folded || column * kTileColumns<Rows> < (row + 1) * kTileRows<Rows>)
        tiles.push_back({static_cast<std::int32_t>(row), static_cast<std::int32_t>(column)});
  return tiles;
}

std::vector<Chunk> chunks_of(const std::vector<std::int32_t>& row_begin) {
  std::vector<Chunk> chunks;
  for (std::size_t l = 0; l + 1 < row_begin.size(); ++l)
    for (std::int32_t row = row_begin[l]; row < row_begin[l + 1]; row += kRowsPerChunk)
      chunks.push_back({row, std::min(kRowsPerChunk, row_begin[l + 1] - row),
                        static_cast<std::int32_t>(l), row + kRowsPerChunk >= row_begin[l + 1]});
  return chunks;
}

}  // namespace
}  // namespace quasi::gw::cuda
