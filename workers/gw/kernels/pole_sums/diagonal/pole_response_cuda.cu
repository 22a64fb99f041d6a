#include "workers/gw/kernels/pole_sums/diagonal/pole_response_cuda.cuh"

#include <vector>

#include "workers/backend/device/device_buffer.cuh"
#include "workers/gw/kernels/dense/dense_cuda.cuh"
#include "workers/gw/kernels/pole_sums/diagonal/diagonal_tiles_cuda.cuh"
#include "workers/gw/kernels/pole_sums/diagonal/response_rows_cuda.cuh"

namespace quasi::gw::cuda {
namespace {

using quasi::cuda::check;
using quasi::cuda::check_launch;
using quasi::cuda::DeviceBuffer;

constexpr const char* kWhat = "response of the plasmon-pole sum";

/// Describes the rows of one outer state and one segment of bands that a tile takes together.
struct SegmentChunk : Chunk {
  std::int32_t segment;
  std::int32_t last_of_segment;
};

struct ResponseWork {
  PoleChangesOnDevice changes;
  PoleModelOnDevice model;  ///< that of the changes; fetch() reads it here
  double closed_x_ry;
  bool wants_own;
  const double2* products;             ///< M, [pair][n_g]
  const std::int64_t* pair = nullptr;  ///< [n_rows], l·n_right + n
  const double* row = nullptr;         ///< ResponseRow, [n_rows]
  const SegmentChunk* chunk = nullptr;
  std::int32_t n_chunks = 0;
  const Tile* tile = nullptr;
  std::int32_t n_tiles = 0;
  std::int32_t n_left = 0;
  std::int64_t n_own = 0;     ///< own sums of an outer state
  std::int64_t n_sums = 0;    ///< own sums, then those of changes, of an outer state
  double* partial = nullptr;  ///< [n_splits][n_left][n_sums][n_tiles]
};

/// Position of an element of a thread.
struct ElementAt {
  std::int64_t g, h;
  bool inside;  ///< false: beyond the rows, or above the diagonal of a folded model
};
template <typename Rows>
__device__ ElementAt element_at(const PoleChangesOnDevice& changes, const Tile& tile, int i,
                                int j) {
  const PoleModelOnDevice& model = changes.model;
  const int thread_row = threadIdx.x / kThreadColumns, thread_column = threadIdx.x % kThreadColumns;
  const std::int64_t g = std::int64_t{tile.row} * kTileRows<Rows> + thread_row + i * kThreadRows;
  const std::int64_t h =
      std::int64_t{tile.column} * kTileColumns<Rows> + thread_column + j * kThreadColumns;
  return {g, h, g < changes.rows.end && h < model.n_g && (!model.folded || h <= g)};
}
/// Returns the number of elements of a change that lie in earlier rows.
__device__ std::int64_t elements_before(const PoleModelOnDevice& model, std::int64_t row) {
  return model.folded ? row * (row + 1) / 2 : row * model.n_g;
}
/// Returns the weight of an element in the sum. A folded model has one triangle of elements, of
/// which those off the diagonal count twice.
__device__ double weight_of(const PoleModelOnDevice& model, const ElementAt& at) {
  return !at.inside ? 0.0 : model.folded && at.h < at.g ? 2.0 : 1.0;
}
/// Returns B of an element times its weight, and 0 for elements outside of the model.
__device__ double2 weighted_strength(const PoleModelOnDevice& model, const ElementAt& at) {
  if (!at.inside) return {0.0, 0.0};
  const std::int64_t position = model.at(at.g, at.h);
  const double2 a = model.strength_at(position);
  const double factor = weight_of(model, at) / model.pole_ry[position];
  return {factor * a.x, factor * a.y};
}
/// Returns the factor f* that an empty band has in the closed sum, and 0 if there is none.
__device__ double closed_factor(double closed_x_ry, double tau) {
  return closed_x_ry < 0.0 ? smooth_pole_value(closed_x_ry, tau, -1.0) : 0.0;
}

/// Lists the arrays that a thread block has in shared memory.
template <typename Rows>
struct ResponseShared : SharedRows<Rows> {
  double before[kOwnSums][kThreads];  ///< own sums at the end of the segment before
};

/// Adds sums of all threads of the block in a fixed tree and stores them for the outer state.
/// @param first  the first of them among the sums of the state
template <int kCount, typename Rows>
__device__ void store(const ResponseWork& work, std::int32_t left, std::int64_t first,
                      double (&sums)[kCount], ResponseShared<Rows>& shared) {
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    for (int offset = 16; offset > 0; offset /= 2)
      sums[k] += __shfl_xor_sync(0xffffffffu, sums[k], offset);
    if (threadIdx.x % 32 == 0) shared.reduction[threadIdx.x / 32][k] = sums[k];
  }
  __syncthreads();
  if (threadIdx.x < kCount) {
    double sum = 0.0;
    for (int w = 0; w < kThreads / 32; ++w) sum += shared.reduction[w][threadIdx.x];
    const std::int64_t row = std::int64_t{blockIdx.y} * work.n_left + left;
    work.partial[(row * work.n_sums + first + threadIdx.x) * work.n_tiles + blockIdx.x] = sum;
  }
  __syncthreads();
}

/// Multiplies the sums with the model. The segment gets their growth since the segment before.
template <typename Rows>
__device__ void multiply_own(const ResponseWork& work, const Tile& tile, const SegmentChunk& chunk,
                             const Rows& rows, ResponseShared<Rows>& shared) {
  double sums[kOwnSums] = {};
#pragma unroll
  for (int i = 0; i < Rows::kSide; ++i)
#pragma unroll
    for (int j = 0; j < Rows::kSide; ++j) {
      const double2 b = weighted_strength(work.model, element_at<Rows>(work.changes, tile, i, j));
      const auto& of = rows.sums[i][j];
      const double tau = rows.tau[i][j];
      sums[static_cast<int>(OwnSum::kTotal)] += of.f.times(b);
      sums[static_cast<int>(OwnSum::kSlope)] -= tau * of.f2.times(b);
      sums[static_cast<int>(OwnSum::kClosed)] +=
          closed_factor(work.closed_x_ry, tau) * of.one.times(b);
      sums[static_cast<int>(OwnSum::kSecond)] += of.e.times(b);
      sums[static_cast<int>(OwnSum::kSecondSlope)] -= tau * of.e2.times(b);
    }
#pragma unroll
  for (int k = 0; k < kOwnSums; ++k) {
    const double now = sums[k];
    sums[k] -= shared.before[k][threadIdx.x];
    shared.before[k][threadIdx.x] = now;
  }
  store(work, chunk.left, chunk.segment * kOwnSums, sums, shared);
}

/// Multiplies the sums with every change.
template <bool kReal, bool kSlope>
__device__ void multiply(const ResponseWork& work, const Tile& tile, std::int32_t left,
                         const ResponseRows<kReal, kSlope>& rows,
                         ResponseShared<ResponseRows<kReal, kSlope>>& shared) {
  using Rows = ResponseRows<kReal, kSlope>;
  constexpr int kSide = Rows::kSide, kPerChange = Rows::kPerChange;
  // P, P' and Re[P' B] of the response, and of its slope.
  ResponseNumber<kReal> by_strength[kPerChange][kSide][kSide], by_tau[kPerChange][kSide][kSide];
  double of_own[kPerChange][kSide][kSide];
  std::int64_t index[kSide][kSide];
  const std::int64_t first = elements_before(work.model, work.changes.rows.begin);
#pragma unroll
  for (int i = 0; i < kSide; ++i)
#pragma unroll
    for (int j = 0; j < kSide; ++j) {
      const ElementAt at = element_at<Rows>(work.changes, tile, i, j);
      index[i][j] = at.inside ? elements_before(work.model, at.g) - first + at.h : -1;
      const double weight = weight_of(work.model, at), tau = rows.tau[i][j],
                   f = closed_factor(work.closed_x_ry, tau);
      const double2 b = weighted_strength(work.model, at);
      const auto& of = rows.sums[i][j];
      by_strength[0][i][j] = combined(weight, of.f, -weight * f, of.one);
      const auto of_tau = combined(work.closed_x_ry * f * f, of.one, -1.0, of.xf2);
      by_tau[0][i][j] = combined(weight, of_tau, 0.0, of_tau);
      of_own[0][i][j] = of_tau.times(b);
      if constexpr (kSlope) {
        by_strength[1][i][j] = combined(-weight * tau, of.f2, 0.0, of.f2);
        const auto slope_of_tau = combined(2.0 * tau, of.xf3, -1.0, of.f2);
        by_tau[1][i][j] = combined(weight, slope_of_tau, 0.0, slope_of_tau);
        of_own[1][i][j] = slope_of_tau.times(b);
      }
    }
  for (std::int64_t c = 0; c < work.changes.n_changes; ++c) {
    const ChangeOnDevice of_change = work.changes.change[c];
    double sums[kPerChange] = {};
#pragma unroll
    for (int i = 0; i < kSide; ++i)
#pragma unroll
      for (int j = 0; j < kSide; ++j) {
        if (index[i][j] < 0) continue;
        const double2 change = of_change.strength_at(index[i][j]);
        const double change_of_tau = of_change.tau_per_ry[index[i][j]];
#pragma unroll
        for (int k = 0; k < kPerChange; ++k)
          sums[k] += by_strength[k][i][j].times(change) +
                     change_of_tau * (of_own[k][i][j] + by_tau[k][i][j].times(change));
      }
    store(work, left, work.n_own + c * kPerChange, sums, shared);
  }
}

template <bool kReal, bool kSlope>
constexpr int kResponseBlocksPerSm = kReal ? (kSlope ? 3 : 4) : (kSlope ? 2 : 3);

template <bool kReal, bool kSlope>
__global__ void __launch_bounds__(kThreads, kResponseBlocksPerSm<kReal, kSlope>)
    sum_responses(const ResponseWork work) {
  using Rows = ResponseRows<kReal, kSlope>;
  constexpr int kSide = Rows::kSide;
  extern __shared__ double2 shared_memory[];
  auto& shared = *reinterpret_cast<ResponseShared<Rows>*>(shared_memory);
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
      const ElementAt at = element_at<Rows>(work.changes, tile, i, j);
      const double pole_ry =
          at.inside ? work.model.pole_ry[work.model.at(at.g, at.h)] : kStaticPole_ry;
      rows.tau[i][j] = pole_ry >= kStaticPole_ry ? 0.0 : 1.0 / pole_ry;
    }

#pragma unroll
  for (int k = 0; k < kOwnSums; ++k) shared.before[k][threadIdx.x] = 0.0;
  for (int c = begin; c < end; ++c) {
    const int stage = (c - begin) % kStages;
    if (c + 1 < end) fetch<Rows>(work, work.chunk[c + 1], first_g, first_h, 1 - stage, shared);
    commit_copies();
    wait_for_all_but_one();
    __syncthreads();
    const SegmentChunk chunk = work.chunk[c];
    const auto* row = reinterpret_cast<const ResponseRow*>(shared.row[stage]);
    for (int r = 0; r < chunk.n_rows; ++r) {
      double2 m_row[kSide], m_column[kSide];
#pragma unroll
      for (int i = 0; i < kSide; ++i) {
        m_row[i] = shared.m_row[stage][r][thread_row + i * kThreadRows];
        m_column[i] = shared.m_column[stage][r][thread_column + i * kThreadColumns];
      }
      rows.add_row(row[r], m_row, m_column, work.changes.rules);
    }
    const bool ends = c + 1 == end;
    if (work.wants_own && (chunk.last_of_segment || ends))
      multiply_own(work, tile, chunk, rows, shared);
    if (chunk.last_of_left || ends) {
      multiply(work, tile, chunk.left, rows, shared);
#pragma unroll
      for (int k = 0; k < kOwnSums; ++k) shared.before[k][threadIdx.x] = 0.0;
#pragma unroll
      for (int i = 0; i < kSide; ++i)
#pragma unroll
        for (int j = 0; j < kSide; ++j) rows.sums[i][j] = {};
    }
    __syncthreads();
  }
}

std::vector<SegmentChunk> chunks_of_segments(const std::vector<std::int64_t>& segment_end,
                                             std::int32_t n_left) {
  std::vector<SegmentChunk> chunks;
  const auto n_right = static_cast<std::int32_t>(segment_end.back());
  for (std::int32_t left = 0; left < n_left; ++left)
    for (std::size_t segment = 0; segment < segment_end.size(); ++segment) {
      const auto begin = static_cast<std::int32_t>(segment > 0 ? segment_end[segment - 1] : 0),
                 end = static_cast<std::int32_t>(segment_end[segment]);
      for (std::int32_t n = begin; n < end; n += kRowsPerChunk) {
        const std::int32_t count = std::min(kRowsPerChunk, end - n);
        SegmentChunk chunk;
        chunk.first_row = left * n_right + n;
        chunk.n_rows = count;
        chunk.left = left;
        chunk.last_of_left = n + count == n_right;
        chunk.segment = static_cast<std::int32_t>(segment);
        chunk.last_of_segment = n + count == end;
        chunks.push_back(chunk);
      }
    }
  return chunks;
}

/// Sums of all splits and tiles, [n_left][n_sums].
template <bool kReal, bool kSlope>
std::vector<double> sums_of(ResponseWork work, const std::vector<ResponseRow>& rows,
                            const std::vector<SegmentChunk>& chunks, cudaStream_t stream) {
  using Rows = ResponseRows<kReal, kSlope>;
  std::vector<std::int64_t> pair(rows.size());
  for (std::size_t i = 0; i < pair.size(); ++i) pair[i] = static_cast<std::int64_t>(i);
  static_assert(kRowsOfRange % kTileRows<Rows> == 0);
  std::vector<Tile> tiles = tiles_of<Rows>(work.model);
  std::erase_if(tiles, [&](const Tile& tile) {
    const std::int64_t row = std::int64_t{tile.row} * kTileRows<Rows>;
    return row < work.changes.rows.begin || row >= work.changes.rows.end;
  });
  // Enough blocks for eight rounds of a large device; depends on the problem alone.
  constexpr std::int64_t kWantedBlocks = 3168;
  const auto n_tiles = static_cast<std::int64_t>(tiles.size());
  const auto n_chunks = static_cast<std::int64_t>(chunks.size());
  const std::int64_t n_splits =
      std::clamp<std::int64_t>(kWantedBlocks / n_tiles, 1, std::min<std::int64_t>(n_chunks, 1024));
  const std::int64_t n_sums = work.n_left * work.n_sums;

  const DeviceBuffer<std::int64_t> pair_there(pair, kWhat);
  const DeviceBuffer<ResponseRow> row_there(rows, kWhat);
  const DeviceBuffer<SegmentChunk> chunk_there(chunks, kWhat);
  const DeviceBuffer<Tile> tile_there(tiles, kWhat);
  DeviceBuffer<double> partial(static_cast<std::size_t>(n_splits * n_sums * n_tiles), kWhat);
  DeviceBuffer<double> found(static_cast<std::size_t>(n_sums), kWhat);
  check(cudaDeviceSynchronize(), kWhat);
  partial.zero(kWhat, stream);
  work.pair = pair_there.data();
  work.row = reinterpret_cast<const double*>(row_there.data());
  work.chunk = chunk_there.data();
  work.n_chunks = static_cast<std::int32_t>(n_chunks);
  work.tile = tile_there.data();
  work.n_tiles = static_cast<std::int32_t>(n_tiles);
  work.partial = partial.data();
  const dim3 grid(static_cast<unsigned>(n_tiles), static_cast<unsigned>(n_splits));
  const auto shared_bytes = static_cast<int>(sizeof(ResponseShared<Rows>));
  check(cudaFuncSetAttribute(sum_responses<kReal, kSlope>,
                             cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
        kWhat);
  sum_responses<kReal, kSlope><<<grid, kThreads, shared_bytes, stream>>>(work);
  check_launch(kWhat);
  add_partials<<<static_cast<unsigned>(n_sums), 256, 0, stream>>>(partial.data(), n_splits, n_sums,
                                                                  n_tiles, found.data());
  check_launch(kWhat);
  check(cudaStreamSynchronize(stream), kWhat);
  return quasi::cuda::to_host(found, kWhat);
}

}  // namespace

ResponsesOnHost pole_response_cuda(const PoleChangesOnDevice& changes,
                                   const ProductsOnDevice& products, const ResponseTerms& terms,
                                   const WantedResponses& wanted, cudaStream_t stream) {
  const std::vector<ResponseRow> rows = make_response_rows(terms, changes.rules);
  const std::vector<std::int64_t> segment_end = segments_of(terms);
  const auto n_segments = static_cast<std::int64_t>(segment_end.size()),
             n_own = wanted.own ? n_segments * kOwnSums : 0,
             per_change = std::int64_t{wanted.slope ? 2 : 1};
  const ResponseWork work{.changes = changes,
                          .model = changes.model,
                          .closed_x_ry = terms.closed_x_ry,
                          .wants_own = wanted.own,
                          .products = products.products,
                          .n_left = static_cast<std::int32_t>(products.n_left),
                          .n_own = n_own,
                          .n_sums = n_own + per_change * changes.n_changes};
  const auto chunks = chunks_of_segments(segment_end, work.n_left);
  const bool real =
      is_real(products.products, products.n_left * products.n_right * changes.model.n_g, stream);
  const std::vector<double> sums =
      real && wanted.slope ? sums_of<true, true>(work, rows, chunks, stream)
      : real               ? sums_of<true, false>(work, rows, chunks, stream)
      : wanted.slope       ? sums_of<false, true>(work, rows, chunks, stream)
                           : sums_of<false, false>(work, rows, chunks, stream);
  const auto at = [&](std::int64_t l, std::int64_t i) {
    return sums[static_cast<std::size_t>(l * work.n_sums + i)];
  };
  ResponsesOnHost responses;
  for (std::int64_t i = 0; i < n_own; ++i)
    for (std::int64_t l = 0; l < products.n_left; ++l) responses.own.push_back(at(l, i));
  for (std::int64_t c = 0; c < changes.n_changes; ++c)
    for (std::int64_t l = 0; l < products.n_left; ++l) {
      responses.total.push_back(at(l, n_own + c * per_change));
      if (wanted.slope) responses.slope.push_back(at(l, n_own + c * per_change + 1));
    }
  return responses;
}

}  // namespace quasi::gw::cuda
