#include <algorithm>
#include <cstddef>

#include "workers/backend/device/device_buffer.cuh"
#include "workers/gw/kernels/pole_sums/diagonal/diagonal_rows_cuda.cuh"
#include "workers/gw/kernels/pole_sums/diagonal/gpp_diagonal_cuda.cuh"

namespace quasi::gw::cuda {
namespace {

using quasi::cuda::check;
using quasi::cuda::check_launch;
using quasi::cuda::DeviceBuffer;

// A block is 16 × 8 threads, each with kSide × kSide elements. Lanes of a warp read 4 rows and 8
// neighbouring columns: no bank conflicts. Smooth rows take 4 × 4 elements, 96 registers of model a
// thread; three blocks fit on an SM.
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

struct TileWork {
  PoleModelOnDevice model;
  PoleRules rules;
  bool second_is_slope;
  const double2* products;   ///< M, [pair][n_g]
  const std::int64_t* pair;  ///< [n_rows], l·n_right + n
  const double* row;         ///< [n_rows][Rows::kLength]
  const Chunk* chunk;
  std::int32_t n_chunks;
  const Tile* tile;
  std::int32_t n_tiles;
  std::int32_t n_left;
  double* partial;  ///< [n_splits][n_left][Rows::kSums][n_tiles]
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
template <typename Rows>
__device__ void fetch(const TileWork& work, const Chunk& chunk, std::int64_t first_g,
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

template <typename Rows>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm) sum_tile(const TileWork work) {
  extern __shared__ double2 shared_memory[];
  auto& shared = *reinterpret_cast<SharedRows<Rows>*>(shared_memory);
  const Tile tile = work.tile[blockIdx.x];
  const std::int64_t n_g = work.model.n_g;
  const std::int64_t first_g = std::int64_t{tile.row} * kTileRows<Rows>;
  const std::int64_t first_h = std::int64_t{tile.column} * kTileColumns<Rows>;
  const int thread_row = threadIdx.x / kThreadColumns;
  const int thread_column = threadIdx.x % kThreadColumns;

  const auto chunk_at = [&](int split) {
    return static_cast<int>(std::int64_t{work.n_chunks} * split / gridDim.y);
  };
  const int begin = chunk_at(blockIdx.y);
  const int end = chunk_at(blockIdx.y + 1);
  if (begin == end) return;
  fetch<Rows>(work, work.chunk[begin], first_g, first_h, 0, shared);
  commit_copies();

  constexpr int kSide = Rows::kSide;
  typename Rows::Element element[kSide][kSide];
#pragma unroll
  for (int i = 0; i < kSide; ++i)
#pragma unroll
    for (int j = 0; j < kSide; ++j) {
      const std::int64_t g = first_g + thread_row + i * kThreadRows;
      const std::int64_t h = first_h + thread_column + j * kThreadColumns;
      double2 strength = {0.0, 0.0};
      double pole_ry = kStaticPole_ry;
      if (g < n_g && h < n_g && (!work.model.folded || h <= g)) {
        strength = work.model.strength[g * n_g + h];
        pole_ry = work.model.pole_ry[g * n_g + h];
        if (work.model.folded && h < g) strength = {2.0 * strength.x, 2.0 * strength.y};
      }
      element[i][j] = Rows::element(strength, pole_ry);
    }

  Rows rows;
  if constexpr (requires { rows.rules; }) {
    rows.rules = work.rules;
    rows.second_is_slope = work.second_is_slope;
  }
  double sums[Rows::kSums] = {};
  for (int c = begin; c < end; ++c) {
    const int stage = (c - begin) % kStages;
    if (c + 1 < end) fetch<Rows>(work, work.chunk[c + 1], first_g, first_h, 1 - stage, shared);
    commit_copies();
    wait_for_all_but_one();
    __syncthreads();
    const Chunk chunk = work.chunk[c];
    for (int r = 0; r < chunk.n_rows; ++r) {
      const double* row = &shared.row[stage][r * Rows::kLength];
      double2 m_column[kSide];
#pragma unroll
      for (int j = 0; j < kSide; ++j)
        m_column[j] = shared.m_column[stage][r][thread_column + j * kThreadColumns];
#pragma unroll
      for (int i = 0; i < kSide; ++i) {
        const double2 m_row = shared.m_row[stage][r][thread_row + i * kThreadRows];
#pragma unroll
        for (int j = 0; j < kSide; ++j) rows.add(element[i][j], m_row, m_column[j], row);
      }
      rows.finish_row(row, sums);
    }
    if (chunk.last_of_left || c + 1 == end) {
      if constexpr (requires { rows.rules; }) {
#pragma unroll
        for (int k = 0; k < Rows::kSums; ++k) {
          sums[k] = rows.t[k];
          rows.t[k] = 0.0;
        }
      }
#pragma unroll
      for (int k = 0; k < Rows::kSums; ++k) {
        for (int offset = 16; offset > 0; offset /= 2)
          sums[k] += __shfl_xor_sync(0xffffffffu, sums[k], offset);
        if (threadIdx.x % 32 == 0) shared.reduction[threadIdx.x / 32][k] = sums[k];
        sums[k] = 0.0;
      }
      __syncthreads();
      if (threadIdx.x < Rows::kSums) {
        double sum = 0.0;
        for (int w = 0; w < kThreads / 32; ++w) sum += shared.reduction[w][threadIdx.x];
        const std::int64_t at =
            (std::int64_t{blockIdx.y} * work.n_left + chunk.left) * Rows::kSums + threadIdx.x;
        work.partial[at * work.n_tiles + blockIdx.x] = sum;
      }
    }
    __syncthreads();
  }
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

/// Rows of one sort.
struct RowList {
  const std::vector<std::int32_t>& begin;  ///< [n_left + 1]
  const std::vector<std::int32_t>& band;   ///< [n_rows]
  const std::vector<double>& row;          ///< [n_rows][Rows::kLength]
  bool second_is_slope;
};

/// Sums of all rows of one sort, [n_left][Rows::kSums].
template <typename Rows>
std::vector<double> sum_rows(const PoleModelOnDevice& model, const PoleRules& rules,
                             const RowList& rows, const ProductsOnDevice& products,
                             cudaStream_t stream) {
  constexpr const char* kWhat = "diagonal plasmon-pole sum";
  const auto n_left = static_cast<std::int64_t>(rows.begin.size()) - 1;
  const std::int64_t n_sums = n_left * Rows::kSums;
  if (rows.band.empty()) return std::vector<double>(static_cast<std::size_t>(n_sums));
  std::vector<std::int64_t> pair(rows.band.size());
  for (std::int64_t l = 0; l < n_left; ++l)
    for (std::int32_t i = rows.begin[l]; i < rows.begin[l + 1]; ++i)
      pair[i] = l * products.n_right + rows.band[i];
  const auto tiles = tiles_of<Rows>(model);
  const auto chunks = chunks_of(rows.begin);
  // Enough blocks for eight rounds of a large device; depends on the problem alone.
  constexpr std::int64_t kWantedBlocks = 3168;
  const auto n_tiles = static_cast<std::int64_t>(tiles.size());
  const auto n_chunks = static_cast<std::int64_t>(chunks.size());
  const std::int64_t n_splits =
      std::clamp<std::int64_t>(kWantedBlocks / n_tiles, 1, std::min<std::int64_t>(n_chunks, 1024));

  const DeviceBuffer<std::int64_t> pair_there(pair, kWhat);
  const DeviceBuffer<double> row_there(rows.row, kWhat);
  const DeviceBuffer<Chunk> chunk_there(chunks, kWhat);
  const DeviceBuffer<Tile> tile_there(tiles, kWhat);
  DeviceBuffer<double> partial(static_cast<std::size_t>(n_splits * n_sums * n_tiles), kWhat);
  DeviceBuffer<double> sum(static_cast<std::size_t>(n_sums), kWhat);
  check(cudaDeviceSynchronize(), kWhat);
  partial.zero(kWhat, stream);

  const TileWork work{.model = model,
                      .rules = rules,
                      .second_is_slope = rows.second_is_slope,
                      .products = products.products,
                      .pair = pair_there.data(),
                      .row = row_there.data(),
                      .chunk = chunk_there.data(),
                      .n_chunks = static_cast<std::int32_t>(n_chunks),
                      .tile = tile_there.data(),
                      .n_tiles = static_cast<std::int32_t>(n_tiles),
                      .n_left = static_cast<std::int32_t>(n_left),
                      .partial = partial.data()};
  const dim3 grid(static_cast<unsigned>(n_tiles), static_cast<unsigned>(n_splits));
  const auto shared_bytes = static_cast<int>(sizeof(SharedRows<Rows>));
  check(cudaFuncSetAttribute(sum_tile<Rows>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             shared_bytes),
        kWhat);
  sum_tile<Rows><<<grid, kThreads, shared_bytes, stream>>>(work);
  check_launch(kWhat);
  add_partials<<<static_cast<unsigned>(n_sums), 256, 0, stream>>>(partial.data(), n_splits, n_sums,
                                                                  n_tiles, sum.data());
  check_launch(kWhat);
  check(cudaStreamSynchronize(stream), kWhat);
  return quasi::cuda::to_host(sum, kWhat);
}

template <int K, bool kReal>
GroupSums sum_group(const PoleModelOnDevice& model, const PoleRules& rules, const PoleGroup& group,
                    const ProductsOnDevice& products, cudaStream_t stream) {
  const auto smooth = sum_rows<SmoothRows<K, kReal>>(
      model, rules,
      {group.smooth_begin, group.smooth_band, group.smooth_row, group.second_is_slope}, products,
      stream);
  const auto direct = sum_rows<DirectRows<K, kReal>>(
      model, rules,
      {group.direct_begin, group.direct_band, group.direct_row, group.second_is_slope}, products,
      stream);
  constexpr int kParts = kReal ? 1 : 2;
  GroupSums sums;
  for (std::int64_t l = 0; l < products.n_left; ++l)
    for (int k = 0; k < K; ++k) {
      const auto part = [&](const std::vector<double>& from, std::int64_t per_left, int index) {
        const auto at = static_cast<std::size_t>(l * per_left + index * K + k);
        return Cplx(from[at], kReal ? 0.0 : from[at + K]);
      };
      sums.total.push_back(part(smooth, K * kParts, 0) + part(direct, 2 * K * kParts, 0));
      sums.sx.push_back(part(direct, 2 * K * kParts, kParts));
    }
  return sums;
}

}  // namespace

GroupSums gpp_diagonal_cuda(const PoleModelOnDevice& model, const PoleRules& rules,
                            const PoleGroup& group, const ProductsOnDevice& products,
                            cudaStream_t stream) {
  const auto run = [&]<int K>() {
    return model.folded ? sum_group<K, true>(model, rules, group, products, stream)
                        : sum_group<K, false>(model, rules, group, products, stream);
  };
  static_assert(kMaxEnergiesPerGroup == 4);
  switch (group.n_energies) {
    case 1:
      return run.operator()<1>();
    case 2:
      return run.operator()<2>();
    case 3:
      return run.operator()<3>();
    default:
      return run.operator()<4>();
  }
}

}  // namespace quasi::gw::cuda
