#include "workers/gw/kernels/pole_sums/diagonal/pole_response_cuda.cuh"

#include "workers/backend/device/device_buffer.cuh"
#include "workers/gw/kernels/pole_sums/diagonal/diagonal_tiles_cuda.cuh"
#include "workers/gw/kernels/pole_sums/diagonal/response_rows.hpp"
#include "workers/gw/kernels/pole_sums/reciprocal.cuh"
#include "workers/gw/physics/plasmon_pole.hpp"
#include "workers/gw/physics/pole_response.hpp"

namespace quasi::gw::cuda {
namespace {

using quasi::cuda::check;
using quasi::cuda::check_launch;
using quasi::cuda::DeviceBuffer;

struct ResponseWork {
  PoleChangesOnDevice changes;
  PoleModelOnDevice model;  ///< that of the changes; fetch() reads it here
  double closed_x_ry;
  const double2* products;             ///< M, [pair][n_g]
  const std::int64_t* pair = nullptr;  ///< [n_rows], l·n_right + n
  const double* row = nullptr;         ///< [n_rows][kResponseRowLength]
  const Chunk* chunk = nullptr;
  std::int32_t n_chunks = 0;
  const Tile* tile = nullptr;
  std::int32_t n_tiles = 0;
  std::int32_t n_left = 0;
  double* partial = nullptr;  ///< [n_splits][n_left][n_changes][Rows::kSums][n_tiles]
};

/// Factor f of a row at one element. All threads of a block take the same branch.
__device__ double value_of(double x, double rule, double tau, const PoleRules& rules) {
  if (rule == row_rule::kNone) return 0.0;
  if (rule == row_rule::kSmoothOccupied || rule == row_rule::kSmoothEmpty)
    return reciprocal_of_normal(fma(x, tau, rule));
  const double pole = tau > 0.0 ? 1.0 / tau : kStaticPole_ry;
  return pole * (rule == row_rule::kDirectOccupied
                     ? pole_factor_occupied(x, pole, rules.screened_exchange_cut)
                     : pole_factor_empty(x, pole, rules.half_width_ry, rules.max_ratio));
}

/// P and P' of the elements of one thread (pole_change_kernels.hpp).
template <bool kSlope>
struct ResponseRows {
  static constexpr int kSide = 2;
  static constexpr int kLength = kResponseRowLength;
  static constexpr int kSums = kSlope ? 2 : 1;
  struct Sums {
    double2 value = {0.0, 0.0}, by_tau = {0.0, 0.0};
  };
  double tau[kSide][kSide];
  PoleResponse closed[kSide][kSide];
  Sums total[kSide][kSide], slope[kSide][kSide];

  static __device__ void add_to(double2& sum, double re, double im, double factor) {
    sum.x = fma(re, factor, sum.x);
    sum.y = fma(im, factor, sum.y);
  }
  __device__ void set(int i, int j, double pole_ry, double closed_x_ry) {
    tau[i][j] = pole_ry >= kStaticPole_ry ? 0.0 : 1.0 / pole_ry;
    closed[i][j] = {0.0, 0.0, 0.0, 0.0};
    if (closed_x_ry < 0.0)
      closed[i][j] =
          pole_response(smooth_pole_value(closed_x_ry, tau[i][j], -1.0), closed_x_ry, tau[i][j]);
  }
  __device__ void add(int i, int j, double2 mg, double2 mh, const double* row,
                      const PoleRules& rules) {
    const double re = fma(mg.x, mh.x, mg.y * mh.y), im = fma(mg.y, mh.x, -mg.x * mh.y);
    const double x = row[0], t = tau[i][j];
    const PoleResponse f = pole_response(value_of(x, row[1], t, rules), x, t);
    add_to(total[i][j].value, re, im, f.value - closed[i][j].value);
    add_to(total[i][j].by_tau, re, im, f.by_tau - closed[i][j].by_tau);
    if constexpr (kSlope) {
      add_to(slope[i][j].value, re, im, f.slope);
      add_to(slope[i][j].by_tau, re, im, f.slope_by_tau);
    }
  }
  /// Product of the sums of one element with a change. @param whole  (B + δB) δτ
  static __device__ double times(const Sums& sums, double2 strength, double2 whole) {
    return fma(sums.value.x, strength.x, -sums.value.y * strength.y) +
           fma(sums.by_tau.x, whole.x, -sums.by_tau.y * whole.y);
  }
};

/// Position of an element of a thread.
struct ElementAt {
  std::int64_t g, h;
  bool inside;  ///< false: beyond the matrix, or above the diagonal of a folded model
};
template <typename Rows>
__device__ ElementAt element_at(const PoleModelOnDevice& model, const Tile& tile, int i, int j) {
  const int thread_row = threadIdx.x / kThreadColumns, thread_column = threadIdx.x % kThreadColumns;
  const std::int64_t g = std::int64_t{tile.row} * kTileRows<Rows> + thread_row + i * kThreadRows;
  const std::int64_t h =
      std::int64_t{tile.column} * kTileColumns<Rows> + thread_column + j * kThreadColumns;
  return {g, h, g < model.n_g && h < model.n_g && (!model.folded || h <= g)};
}

/// Multiplies the sums of a tile with every change, adds them over the block and stores them for
/// the outer state `left`. The sums then start anew.
template <bool kSlope>
__device__ void multiply(const ResponseWork& work, const Tile& tile, std::int32_t left,
                         ResponseRows<kSlope>& rows, SharedRows<ResponseRows<kSlope>>& shared) {
  using Rows = ResponseRows<kSlope>;
  constexpr int kSide = Rows::kSide;
  const std::int64_t n_g = work.model.n_g;
  for (std::int64_t c = 0; c < work.changes.n_changes; ++c) {
    double sums[Rows::kSums] = {};
#pragma unroll
    for (int i = 0; i < kSide; ++i)
#pragma unroll
      for (int j = 0; j < kSide; ++j) {
        const ElementAt at = element_at<Rows>(work.model, tile, i, j);
        if (!at.inside) continue;
        const std::int64_t index =
            c * work.changes.n_elements +
            (work.model.folded ? at.g * (at.g + 1) / 2 + at.h : at.g * n_g + at.h);
        const float2 change = work.changes.strength[index];
        const double change_of_tau = work.changes.tau_per_ry[index];
        const double2 a = work.model.strength[at.g * n_g + at.h];
        const double per_pole = 1.0 / work.model.pole_ry[at.g * n_g + at.h];
        const double weight = work.model.folded && at.h < at.g ? 2.0 : 1.0;
        const double2 strength = {weight * change.x, weight * change.y};
        const double2 whole = {fma(weight * a.x, per_pole, strength.x) * change_of_tau,
                               fma(weight * a.y, per_pole, strength.y) * change_of_tau};
        sums[0] += Rows::times(rows.total[i][j], strength, whole);
        if constexpr (kSlope) sums[1] += Rows::times(rows.slope[i][j], strength, whole);
      }
#pragma unroll
    for (int k = 0; k < Rows::kSums; ++k) {
      for (int offset = 16; offset > 0; offset /= 2)
        sums[k] += __shfl_xor_sync(0xffffffffu, sums[k], offset);
      if (threadIdx.x % 32 == 0) shared.reduction[threadIdx.x / 32][k] = sums[k];
    }
    __syncthreads();
    if (threadIdx.x < Rows::kSums) {
      double sum = 0.0;
      for (int w = 0; w < kThreads / 32; ++w) sum += shared.reduction[w][threadIdx.x];
      const std::int64_t row = std::int64_t{blockIdx.y} * work.n_left + left;
      const std::int64_t at =
          (row * work.changes.n_changes + c) * Rows::kSums + static_cast<int>(threadIdx.x);
      work.partial[at * work.n_tiles + blockIdx.x] = sum;
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kSide; ++i)
#pragma unroll
    for (int j = 0; j < kSide; ++j) rows.total[i][j] = rows.slope[i][j] = {};
}

template <bool kSlope>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm) sum_responses(const ResponseWork work) {
  using Rows = ResponseRows<kSlope>;
  constexpr int kSide = Rows::kSide;
  extern __shared__ double2 shared_memory[];
  auto& shared = *reinterpret_cast<SharedRows<Rows>*>(shared_memory);
  const Tile tile = work.tile[blockIdx.x];
  const std::int64_t first_g = std::int64_t{tile.row} * kTileRows<Rows>;
  const std::int64_t first_h = std::int64_t{tile.column} * kTileColumns<Rows>;
  const int thread_row = threadIdx.x / kThreadColumns, thread_column = threadIdx.x % kThreadColumns;

  const auto chunk_at = [&](int split) {
    return static_cast<int>(std::int64_t{work.n_chunks} * split / gridDim.y);
  };
  const int begin = chunk_at(blockIdx.y);
  const int end = chunk_at(blockIdx.y + 1);
  if (begin == end) return;
  fetch<Rows>(work, work.chunk[begin], first_g, first_h, 0, shared);
  commit_copies();

  Rows rows;
#pragma unroll
  for (int i = 0; i < kSide; ++i)
#pragma unroll
    for (int j = 0; j < kSide; ++j) {
      const ElementAt at = element_at<Rows>(work.model, tile, i, j);
      const double pole_ry =
          at.inside ? work.model.pole_ry[at.g * work.model.n_g + at.h] : kStaticPole_ry;
      rows.set(i, j, pole_ry, work.closed_x_ry);
    }

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
        for (int j = 0; j < kSide; ++j) rows.add(i, j, m_row, m_column[j], row, work.changes.rules);
      }
    }
    if (chunk.last_of_left || c + 1 == end) multiply<kSlope>(work, tile, chunk.left, rows, shared);
    __syncthreads();
  }
}

template <bool kSlope>
ResponsesOnHost sum(ResponseWork work, const std::vector<double>& rows,
                    const ProductsOnDevice& products, cudaStream_t stream) {
  using Rows = ResponseRows<kSlope>;
  constexpr const char* kWhat = "response of the plasmon-pole sum";
  const auto n_left = static_cast<std::int32_t>(products.n_left);
  const auto n_right = static_cast<std::int32_t>(products.n_right);
  std::vector<std::int64_t> pair(static_cast<std::size_t>(n_left) * n_right);
  std::vector<std::int32_t> begins;
  for (std::size_t i = 0; i < pair.size(); ++i) pair[i] = static_cast<std::int64_t>(i);
  for (std::int32_t l = 0; l <= n_left; ++l) begins.push_back(l * n_right);
  const auto tiles = tiles_of<Rows>(work.model);
  const auto chunks = chunks_of(begins);
  // Enough blocks for eight rounds of a large device; depends on the problem alone.
  constexpr std::int64_t kWantedBlocks = 3168;
  const auto n_tiles = static_cast<std::int64_t>(tiles.size());
  const auto n_chunks = static_cast<std::int64_t>(chunks.size());
  const std::int64_t n_splits =
      std::clamp<std::int64_t>(kWantedBlocks / n_tiles, 1, std::min<std::int64_t>(n_chunks, 1024));
  const std::int64_t n_sums = n_left * work.changes.n_changes * Rows::kSums;

  const DeviceBuffer<std::int64_t> pair_there(pair, kWhat);
  const DeviceBuffer<double> row_there(rows, kWhat);
  const DeviceBuffer<Chunk> chunk_there(chunks, kWhat);
  const DeviceBuffer<Tile> tile_there(tiles, kWhat);
  DeviceBuffer<double> partial(static_cast<std::size_t>(n_splits * n_sums * n_tiles), kWhat);
  DeviceBuffer<double> found(static_cast<std::size_t>(n_sums), kWhat);
  check(cudaDeviceSynchronize(), kWhat);
  partial.zero(kWhat, stream);
  work.pair = pair_there.data();
  work.row = row_there.data();
  work.chunk = chunk_there.data();
  work.n_chunks = static_cast<std::int32_t>(n_chunks);
  work.tile = tile_there.data();
  work.n_tiles = static_cast<std::int32_t>(n_tiles);
  work.n_left = n_left;
  work.partial = partial.data();
  const dim3 grid(static_cast<unsigned>(n_tiles), static_cast<unsigned>(n_splits));
  const auto shared_bytes = static_cast<int>(sizeof(SharedRows<Rows>));
  check(cudaFuncSetAttribute(sum_responses<kSlope>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             shared_bytes),
        kWhat);
  sum_responses<kSlope><<<grid, kThreads, shared_bytes, stream>>>(work);
  check_launch(kWhat);
  add_partials<<<static_cast<unsigned>(n_sums), 256, 0, stream>>>(partial.data(), n_splits, n_sums,
                                                                  n_tiles, found.data());
  check_launch(kWhat);
  check(cudaStreamSynchronize(stream), kWhat);
  const std::vector<double> host = quasi::cuda::to_host(found, kWhat);
  ResponsesOnHost responses;
  for (std::int64_t c = 0; c < work.changes.n_changes; ++c)
    for (std::int64_t l = 0; l < n_left; ++l) {
      const double* at = host.data() + (l * work.changes.n_changes + c) * Rows::kSums;
      responses.total.push_back(at[0]);
      if (kSlope) responses.slope.push_back(at[Rows::kSums - 1]);
    }
  return responses;
}

}  // namespace

ResponsesOnHost pole_response_cuda(const PoleChangesOnDevice& changes,
                                   const ProductsOnDevice& products, const ResponseTerms& terms,
                                   bool with_slope, cudaStream_t stream) {
  const std::vector<double> rows = make_response_rows(terms, changes.rules);
  const ResponseWork work{.changes = changes,
                          .model = changes.model,
                          .closed_x_ry = terms.closed_x_ry,
                          .products = products.products};
  return with_slope ? sum<true>(work, rows, products, stream)
                    : sum<false>(work, rows, products, stream);
}

}  // namespace quasi::gw::cuda
