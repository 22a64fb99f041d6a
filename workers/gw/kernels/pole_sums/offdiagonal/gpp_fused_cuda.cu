
#include <limits>
#include <string>

#include "workers/backend/device/check_cuda.cuh"
#include "workers/backend/error.hpp"
#include "workers/gw/kernels/pole_sums/offdiagonal/fused_tile_cuda.cuh"
#include "workers/gw/kernels/pole_sums/offdiagonal/gpp_fused_cuda.cuh"
#include "workers/gw/kernels/pole_sums/offdiagonal/separable_pole.hpp"
#include "workers/gw/physics/plasmon_pole.hpp"

namespace quasi::gw::cuda {

using quasi::cuda::check;
using quasi::cuda::check_launch;

namespace fused {
namespace {

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

/// Shared memory of a block beside the stages of M and P.
struct TileShared {
  double2 dropped[kEnergies];  ///< poles whose term is dropped or reversed, as an interval
  double x_ry[kEnergies];      ///< E − E_n
  std::uint64_t p_ready, m_there[kStages], m_used[kStages];
};

/// One thread's part of the tile of T that a block makes, and the steps that make it. Stage i of M
/// and P serves steps i, i + kStages, …
template <PoleFactor kFactor>
class Tile {
 public:
  static constexpr bool kStored = kFactor == PoleFactor::kStored;

  __device__ __forceinline__ Tile(const FusedProduct& in, double2* stages, TileShared& shared)
      : in_(in),
        shared_(shared),
        m_stages_(stages),
        p_stages_(stages + kStages * kMStage),
        all_steps_(static_cast<int>((in.model.n_g + kDepth - 1) / kDepth)),
        place_(kStored ? place_of_stored(in, all_steps_) : place_of_made(in, all_steps_)) {}

  __device__ __forceinline__ int steps() const { return place_.steps; }

  /// Starts the barriers and finds the intervals of dropped poles of the tile's energies.
  __device__ __forceinline__ void start() {
    if (thread_ == 0) {
      start_barrier(&shared_.p_ready, kWarps);
      for (int i = 0; i < kStages; ++i) {
        start_barrier(&shared_.m_there[i], 1);
        start_barrier(&shared_.m_used[i], kCluster * kWarps);
      }
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    if (!kStored && thread_ < kEnergies) {
      const std::int64_t e = energy_0_ + thread_;
      const double x = in_.energies_ry[e < in_.n_energies ? e : in_.n_energies - 1] - in_.band_ry;
      const PoleInterval interval =
          kFactor == PoleFactor::kOccupied
              ? dropped_occupied(x, in_.rules.screened_exchange_cut)
              : dropped_empty(x, in_.rules.half_width_ry, in_.rules.max_ratio);
      shared_.dropped[thread_] = {interval.low, interval.high > 0.0 ? interval.high : 0.0};
      shared_.x_ry[thread_] = x;
    }
    __syncthreads();
    meet_cluster();
    find_sources();
  }

  /// Begins the copy of this block's part of M, and of a stored P, of one step.
  __device__ __forceinline__ void copy(int step) {
    if (thread_ != 0 || step >= place_.steps) return;
    const int stage = step % kStages;
    std::uint64_t* const there = &shared_.m_there[stage];
    if (step >= kStages) wait_for(&shared_.m_used[stage], (step / kStages - 1) & 1);
    expect(there, (kMStage + (kStored ? kPStage : 0)) * sizeof(double2));
    copy_block<kCluster>(m_stages_ + stage * kMStage + rank_ * kPart,
                         m_from_ + static_cast<std::int64_t>(step) * kMStage,
                         kPart * sizeof(double2), there);
    if constexpr (kStored)
      copy_block<1>(p_stages_ + stage * kPStage,
                    p_from_ + static_cast<std::int64_t>(step) * kPStage, kPStage * sizeof(double2),
                    there);
  }

  /// Loads the element (G, G') of this thread a step before it is used; beyond the matrix A = 0.
  __device__ __forceinline__ void load_element(int step) {
    const bool there = column_there_ && step * kDepth + make_g_ < static_cast<int>(in_.model.n_g);
    strength_ = there ? in_.model.strength[element_at_] : double2{0.0, 0.0};
    pole_ry_ = there ? in_.model.pole_ry[element_at_] : kStaticPole_ry;
    element_at_ += kDepth * in_.model.n_g;
    if (in_.model.folded && step + 1 == place_.steps) {
      const double kept = folded_weight(make_g_, make_h_);
      strength_ = {kept * strength_.x, kept * strength_.y};
    }
  }

  /// Makes P of the loaded element for all energies of the tile and loads the next element.
  __device__ __forceinline__ void make_p(int step) {
    double* const to = reinterpret_cast<double*>(p_stages_ + step % kPStages * kPStage) + make_at_;
#pragma unroll
    for (int e = 0; e < kEnergies; ++e) {
      const double f =
          factor<kFactor == PoleFactor::kOccupied>(shared_.x_ry[e], pole_ry_, shared_.dropped[e]);
      to[2 * e * (kColumns * kQuads * 2)] = f * strength_.x;
      to[2 * e * (kColumns * kQuads * 2) + kPStage] = f * strength_.y;
    }
    load_element(step + 1);
  }

  /// Adds the products of one step to the tile and makes P of the next one among them.
  __device__ __forceinline__ void multiply(int step) {
    wait_for(&shared_.m_there[step % kStages], step / kStages & 1);
    const double2* const m =
        m_stages_ + step % kStages * kMStage + warp_ % kRowTiles * (kMStage / kRowTiles) + lane_;
    const double2* const p =
        p_stages_ + step % kPStages * kPStage + warp_ / kRowTiles * (kPStage / 4) + lane_;
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
      multiply_columns(n, a_re, a_im, p);
      if (n == (kStored ? 3 : 1)) hand_over(step);
    }
    if constexpr (!kStored) wait_for(&shared_.p_ready, step & 1);
  }

  /// Writes the tile to T.
  __device__ __forceinline__ void write() const {
    // Bands have whole blocks of rows; one of made P is alone.
    const std::int64_t row_blocks = (in_.n_left + kRows - 1) / kRows,
                       band = kStored ? place_.row_block / row_blocks : 0,
                       row_0 = (place_.row_block - band * row_blocks) * kRows, n_g = in_.model.n_g;
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const int at = warp_ / kRowTiles * kWarpTile + n * 8 + 2 * (lane_ % 4);
      const std::int64_t e = energy_0_ + at / kColumns, h = column_0_ + at % kColumns;
      if (e >= in_.n_energies) continue;
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const std::int64_t row =
              row_0 + warp_ % kRowTiles * kWarpTile + 16 * i + 8 * half + lane_ / 4;
          if (row >= in_.n_left) continue;
          double2* to = in_.t + ((band * in_.n_left + row) * in_.n_energies + e) * n_g + h;
          if (h < n_g) to[0] = {re_[i][n][2 * half], im_[i][n][2 * half]};
          if (h + 1 < n_g) to[1] = {re_[i][n][2 * half + 1], im_[i][n][2 * half + 1]};
        }
    }
  }

 private:
  static constexpr int kPStages = kStored ? kStages : kMadeStages;
  static constexpr int kPart = kMStage / kCluster;  ///< of a step, that this block copies for all

  /// Finds the places in global memory from which this block copies.
  __device__ __forceinline__ void find_sources() {
    rank_ = rank_in_cluster();
    m_from_ = in_.packed + static_cast<std::int64_t>(place_.row_block) * all_steps_ * kMStage +
              rank_ * kPart;
    const int groups = static_cast<int>((in_.n_energies + kEnergies - 1) / kEnergies);
    p_from_ =
        in_.stored +
        (static_cast<std::int64_t>(place_.group < groups ? place_.group : groups - 1) * all_steps_ +
         place_.column) *
            all_steps_ * kPStage;
  }

  /// Complex products of this warp's rows with eight columns of P.
  __device__ __forceinline__ void multiply_columns(int n, const double2 (&a_re)[2][kQuads],
                                                   const double2 (&a_im)[2][kQuads],
                                                   const double2* p) {
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
    for (int i = 0; i < 2; ++i) multiply_add(re_[i][n], a_re[i], b_re);
#pragma unroll
    for (int i = 0; i < 2; ++i) multiply_add(im_[i][n], a_re[i], b_im);
#pragma unroll
    for (int i = 0; i < 2; ++i) multiply_add(im_[i][n], a_im[i], b_re);
#pragma unroll
    for (double& one : b_im) one = negated(one);
#pragma unroll
    for (int i = 0; i < 2; ++i) multiply_add(re_[i][n], a_im[i], b_im);
  }

  /// Makes P of the next step, among products that hide its latency, and tells the cluster that
  /// this warp has read what it needs of M and of a stored P.
  __device__ __forceinline__ void hand_over(int step) {
    if constexpr (!kStored) make_p(step + 1);
    __syncwarp();
    if (!kStored && lane_ == 0) arrive(&shared_.p_ready);
    if (lane_ < kCluster) arrive_at(&shared_.m_used[step % kStages], lane_);
  }

  const FusedProduct& in_;
  TileShared& shared_;
  double2* const m_stages_;
  double2* const p_stages_;
  const int thread_ = static_cast<int>(threadIdx.x), lane_ = thread_ % 32, warp_ = thread_ / 32;
  const int all_steps_;
  const Place place_;
  const std::int64_t energy_0_ = static_cast<std::int64_t>(place_.group) * kEnergies,
                     column_0_ = static_cast<std::int64_t>(place_.column) * kColumns;
  unsigned rank_ = 0;
  const double2* m_from_ = nullptr;
  const double2* p_from_ = nullptr;
  // The element (G, G') of this thread. A warp has 8 G × 4 G': its stores then fall into different
  // banks.
  const int make_g_ = warp_ / 4 * 8 + lane_ % 8, make_h_ = warp_ % 4 * 4 + lane_ / 8;
  // [part][8 columns][pair of quads][lane][quad of the pair]
  const int make_at_ =
      2 * ((make_h_ / 8 * 2 + make_g_ / 8) * 32 + make_h_ % 8 * 4 + make_g_ % 4) + make_g_ / 4 % 2;
  const bool column_there_ = column_0_ + make_h_ < in_.model.n_g;
  std::int64_t element_at_ = make_g_ * in_.model.n_g + column_0_ + make_h_;
  double2 strength_{0.0, 0.0};
  double pole_ry_ = kStaticPole_ry;
  double re_[2][4][4] = {}, im_[2][4][4] = {};  ///< the warp's part of T: rows, columns, C
};

template <PoleFactor kFactor>
__global__ void __launch_bounds__(kThreads, 1) __cluster_dims__(kCluster, 1, 1)
    fused_product(FusedProduct in) {
  extern __shared__ double2 stages[];
  __shared__ TileShared shared;
  Tile<kFactor> tile(in, stages, shared);
  tile.start();
  tile.copy(0);
  tile.copy(1);
  if constexpr (kFactor != PoleFactor::kStored) {
    tile.load_element(0);
    tile.make_p(0);
    __syncthreads();
  }
  for (int step = 0; step < tile.steps(); ++step) {
    tile.copy(step + 2);
    tile.multiply(step);
  }
  meet_cluster();
  tile.write();
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
}  // namespace fused

using fused::blocks_of;
using fused::kCluster;
using fused::kColumns;
using fused::kDepth;
using fused::kEnergies;
using fused::kMStage;
using fused::kPStage;
using fused::kRows;
using fused::kShared_bytes;
using fused::kThreads;

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

void pack_for_fused_product(DeviceMatrix m, std::int64_t n_left, std::int64_t n_g, double2* packed,
                            cudaStream_t stream) {
  fused::pack_rows<<<dim3(blocks_of(n_g, kDepth), blocks_of(n_left, kRows)), kThreads, 0, stream>>>(
      m.data, m.stride, n_left, n_g, packed);
  check_launch("packing pair products");
}

std::int64_t stored_size(std::int64_t n_g) {
  return static_cast<std::int64_t>(blocks_of(n_g, kDepth)) * blocks_of(n_g, kColumns) * kPStage;
}

void store_separable_terms(const PoleModelOnDevice& model, const StoredTerms& terms,
                           std::int64_t n_groups, double2* stored, cudaStream_t stream) {
  fused::store_terms<<<dim3(blocks_of(model.n_g, kDepth), blocks_of(model.n_g, kColumns),
                            static_cast<unsigned>(n_groups)),
                       kThreads, 0, stream>>>(model, terms, stored);
  check_launch("separable terms");
}

void launch_fused_product(const FusedProduct& in, cudaStream_t stream) {
  constexpr const char* kWhat = "fused off-diagonal product";
  const auto kernel = in.factor == PoleFactor::kOccupied
                          ? fused::fused_product<PoleFactor::kOccupied>
                      : in.factor == PoleFactor::kEmpty ? fused::fused_product<PoleFactor::kEmpty>
                                                        : fused::fused_product<PoleFactor::kStored>;
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
