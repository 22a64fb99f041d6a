#include <algorithm>
#include <cstddef>

#include "workers/backend/device/device_buffer.cuh"
#include "workers/gw/kernels/pole_sums/diagonal/diagonal_rows_cuda.cuh"
#include "workers/gw/kernels/pole_sums/diagonal/diagonal_tiles_cuda.cuh"
#include "workers/gw/kernels/pole_sums/diagonal/gpp_diagonal_cuda.cuh"

namespace quasi::gw::cuda {
namespace {

using quasi::cuda::check;
using quasi::cuda::check_launch;
using quasi::cuda::DeviceBuffer;

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

template <typename Rows>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm) sum_tile(const TileWork work) {
  extern __shared__ double2 shared_memory[];
  auto& shared = *reinterpret_cast<SharedRows<Rows>*>(shared_memory);
  const Tile tile = work.tile[blockIdx.x];
  const std::int64_t n_g = work.model.n_g, end_g = work.model.rows.end;
  const std::int64_t first_g = work.model.rows.begin + std::int64_t{tile.row} * kTileRows<Rows>;
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
      if (g < end_g && h < n_g && (!work.model.folded || h <= g)) {
        const std::int64_t at = work.model.at(g, h);
        strength = work.model.strength[at];
        pole_ry = work.model.pole_ry[at];
        if (work.model.folded && h < g) strength = {2.0 * strength.x, 2.0 * strength.y};
      }
      element[i][j] = Rows::element(strength, pole_ry);
    }

  Rows rows;
  if constexpr (requires { rows.rules; }) rows.rules = work.rules;
  if constexpr (requires { rows.second_is_slope; }) rows.second_is_slope = work.second_is_slope;
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

/// Rows of one sort.
struct RowList {
  const std::vector<std::int32_t>& begin;  ///< [n_left + 1]
  const std::vector<std::int32_t>& band;   ///< [n_rows]
  const std::vector<double>& row;          ///< [n_rows][Rows::kLength]
  bool second_is_slope;
};

/// Returns the tiles of (G, G') of the rows that a model holds. Row numbers of the tiles count from
/// the first of these rows.
template <typename Rows>
std::vector<Tile> tiles_of_rows(const PoleModelOnDevice& model) {
  std::vector<Tile> tiles;
  for (std::int32_t row = 0;; ++row) {
    const std::int64_t first = model.rows.begin + std::int64_t{row} * kTileRows<Rows>,
                       columns =
                           model.folded ? std::min(model.n_g, first + kTileRows<Rows>) : model.n_g;
    if (first >= model.rows.end) return tiles;
    for (std::int32_t column = 0; std::int64_t{column} * kTileColumns<Rows> < columns; ++column)
      tiles.push_back({row, column});
  }
}

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
  const auto tiles = tiles_of_rows<Rows>(model);
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
  const auto split = sum_rows<SplitRows<K, kReal>>(
      model, rules, {group.split_begin, group.split_band, group.split_row, group.second_is_slope},
      products, stream);
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
      constexpr int kPerLeft = 2 * K * kParts;
      sums.total.push_back(part(smooth, K * kParts, 0) + part(split, kPerLeft, 0) +
                           part(direct, kPerLeft, 0));
      sums.sx.push_back(part(split, kPerLeft, kParts) + part(direct, kPerLeft, kParts));
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
