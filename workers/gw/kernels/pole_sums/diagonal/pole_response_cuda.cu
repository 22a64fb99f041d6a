#include "workers/gw/kernels/pole_sums/diagonal/pole_response_cuda.cuh"

#include <vector>

#include "workers/backend/device/device_buffer.cuh"
#include "workers/backend/device/launch_cuda.cuh"
#include "workers/gw/kernels/dense/dense_cuda.cuh"
#include "workers/gw/kernels/pole_sums/diagonal/response_tiles_cuda.cuh"

namespace quasi::gw::cuda {
namespace {

using quasi::cuda::check;
using quasi::cuda::check_launch;
using quasi::cuda::DeviceBuffer;

constexpr const char* kWhat = "response of the plasmon-pole sum";

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
    reduce_in_warp(now - shared.before[k][threadIdx.x], k, shared);
    shared.before[k][threadIdx.x] = now;
  }
  store_slots(work, chunk.group, chunk.segment * kOwnSums, kOwnSums, shared);
}

/// Multiplies the sums with every change.
template <bool kReal, bool kSlope>
__device__ void multiply(const ResponseWork& work, const Tile& tile, std::int32_t group,
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
  static_assert(kSumsAtATime % kPerChange == 0);
  int slot = 0;
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
#pragma unroll
    for (int k = 0; k < kPerChange; ++k) reduce_in_warp(sums[k], slot++, shared);
    if (slot < kSumsAtATime && c + 1 < work.changes.n_changes) continue;
    store_slots(work, group, work.n_own + (c + 1) * kPerChange - slot, slot, shared);
    slot = 0;
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
  const int thread_row = threadIdx.x / kThreadColumns, thread_column = threadIdx.x % kThreadColumns;

  const auto chunk_at = [&](int split) {
    return static_cast<int>(std::int64_t{work.n_chunks} * split / gridDim.y);
  };
  const int begin = chunk_at(blockIdx.y);
  const int end = chunk_at(blockIdx.y + 1);
  if (begin == end) return;
  fetch_rows<Rows>(work, work.chunk[begin], tile, 0, shared);
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
    if (c + 1 < end) fetch_rows<Rows>(work, work.chunk[c + 1], tile, 1 - stage, shared);
    commit_copies();
    wait_for_all_but_one();
    __syncthreads();
    const SegmentChunk chunk = work.chunk[c];
    const auto* row = reinterpret_cast<const ResponseRow*>(shared.row[stage]);
    const bool ends = c + 1 == end;
    for (int r = 0; r < chunk.n_rows;) {
      const ResponseRow& of_run = row[r];
      const int here = min(of_run.run, chunk.n_rows - r);
#pragma unroll 4
      for (const int end_of_run = r + here; r < end_of_run; ++r) {
        typename Rows::Number m_row[kSide], m_column[kSide];
        read_side<Rows>(shared.m_row[stage][r], thread_row, kThreadRows, m_row);
        read_side<Rows>(shared.m_column[stage][r], thread_column, kThreadColumns, m_column);
        rows.add_product(m_row, m_column);
      }
      // The next chunk of this block continues a run that is not complete.
      if (here == of_run.run || ends) rows.end_run(of_run, work.changes.rules);
    }
    if (work.wants_own && (chunk.last_of_segment || ends))
      multiply_own(work, tile, chunk, rows, shared);
    if (chunk.last_of_group || ends) {
      multiply(work, tile, chunk.group, rows, shared);
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

/// Puts the real parts of M in pairs. Numbers past the end are 0.
struct PackReal {
  const double2* products;  ///< [pair][n_g]
  double* packed;           ///< [pair][stride]
  std::int64_t n_g, stride;
  __device__ void operator()(std::int64_t index) const {
    const std::int64_t pair = index / stride, g = index - pair * stride;
    packed[index] = g < n_g ? products[pair * n_g + g].x : 0.0;
  }
};

/// Returns the sums of all splits and tiles, [n_groups][n_sums].
template <bool kReal, bool kSlope>
std::vector<double> sums_of(ResponseWork work, const OrderedRows& rows, cudaStream_t stream) {
  using Rows = ResponseRows<kReal, kSlope>;
  const std::vector<SegmentChunk> chunks = chunks_of(rows);
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
  const std::int64_t n_sums = work.n_groups * work.n_sums;

  const DeviceBuffer<std::int64_t> pair_there(rows.pair, kWhat);
  const DeviceBuffer<ResponseRow> row_there(rows.row, kWhat);
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
  const OrderedRows rows = make_response_rows(terms, changes.rules);
  const std::int64_t n_own = wanted.own ? rows.n_segments * kOwnSums : 0,
                     per_change = wanted.slope ? 2 : 1, n_g = changes.model.n_g,
                     n_pairs = products.n_left * products.n_right, n_groups = rows.n_groups();
  ResponseWork work{.changes = changes,
                    .model = changes.model,
                    .closed_x_ry = terms.closed_x_ry,
                    .wants_own = wanted.own,
                    .items = products.products,
                    .items_of_pair = n_g,
                    .n_groups = static_cast<std::int32_t>(n_groups),
                    .n_own = n_own,
                    .n_sums = n_own + per_change * changes.n_changes};
  const bool real = is_real(products.products, n_pairs * n_g, stream);
  DeviceBuffer<double> packed;
  if (real) {
    const std::int64_t stride = n_g + n_g % 2;
    packed = DeviceBuffer<double>(static_cast<std::size_t>(n_pairs * stride), kWhat);
    quasi::cuda::for_each_index(
        n_pairs * stride, PackReal{products.products, packed.data(), n_g, stride}, kWhat, stream);
    work.items = reinterpret_cast<const double2*>(packed.data());
    work.items_of_pair = stride / 2;
  }
  const std::vector<double> sums = real && wanted.slope ? sums_of<true, true>(work, rows, stream)
                                   : real               ? sums_of<true, false>(work, rows, stream)
                                   : wanted.slope       ? sums_of<false, true>(work, rows, stream)
                                                        : sums_of<false, false>(work, rows, stream);
  const auto at = [&](std::int64_t group, std::int64_t i) {
    return sums[static_cast<std::size_t>(group * work.n_sums + i)];
  };
  ResponsesOnHost responses{.group_end = rows.group_end, .total = {}, .slope = {}, .own = {}};
  for (std::int64_t i = 0; i < n_own; ++i)
    for (std::int64_t g = 0; g < n_groups; ++g) responses.own.push_back(at(g, i));
  for (std::int64_t c = 0; c < changes.n_changes; ++c)
    for (std::int64_t g = 0; g < n_groups; ++g) {
      responses.total.push_back(at(g, n_own + c * per_change));
      if (wanted.slope) responses.slope.push_back(at(g, n_own + c * per_change + 1));
    }
  return responses;
}

}  // namespace quasi::gw::cuda
