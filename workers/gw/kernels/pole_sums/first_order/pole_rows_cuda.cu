#include "workers/backend/device/check_cuda.cuh"
#include "workers/gw/kernels/pole_sums/first_order/pole_rows_cuda.cuh"
#include "workers/gw/kernels/pole_sums/reciprocal.cuh"
#include "workers/gw/physics/plasmon_pole.hpp"
#include "workers/gw/physics/pole_difference.hpp"

namespace quasi::gw::cuda {
namespace {

constexpr int kRows = 4;    ///< rows of a block, one for each warp
constexpr int kStates = 8;  ///< outer states of a block
constexpr int kTile = 32;   ///< G and G' of a tile
constexpr int kThreads = kRows * kTile;

/// Poles and pair products of one tile of (G, G'), which the threads of a block share.
struct TileShared {
  double2 strength[kTile][kTile + 1];  ///< A, [G'][G]
  double pole_ry[kTile][kTile + 1];
  double2 products[kRows][kStates][kTile];  ///< M, [row][m][G']
};

__device__ double factor_of(const PoleRow& row, double pole_ry, const PoleRules& rules) {
  const PoleQuotient a = pole_quotient(row.x_a_ry, pole_ry, row.occupation_a, rules.half_width_ry,
                                       rules.max_ratio, rules.screened_exchange_cut);
  if (!row.difference) return a.numerator * reciprocal_of_normal(a.denominator);
  const PoleQuotient b = pole_quotient(row.x_b_ry, pole_ry, row.occupation_b, rules.half_width_ry,
                                       rules.max_ratio, rules.screened_exchange_cut);
  const PoleQuotient both = pole_difference_quotient(a, b, row.a_minus_b_ry);
  return both.numerator * reciprocal_of_normal(both.denominator);
}

/// Reads A and ω̃ of one tile. Elements beyond the matrix are 0 and static.
__device__ void read_matrix(const PoleRowsProduct& in, std::int64_t g_0, std::int64_t h_0,
                            TileShared& shared) {
  const int lane = static_cast<int>(threadIdx.x) % kTile,
            warp = static_cast<int>(threadIdx.x) / kTile;
  const std::int64_t n_g = in.model.n_g;
  for (int i = warp; i < kTile; i += kRows) {
    // Consecutive lanes read consecutive elements of a row of A.
    const std::int64_t row = in.adjoint ? h_0 + i : g_0 + i,
                       column = in.adjoint ? g_0 + lane : h_0 + lane;
    double2 a{0.0, 0.0};
    double pole_ry = kStaticPole_ry;
    if (row < n_g && column < n_g) {
      a = in.model.strength[row * n_g + column];
      pole_ry = in.model.pole_ry[row * n_g + column];
    }
    if (in.adjoint) a.y = -a.y;
    const int h = in.adjoint ? i : lane, g = in.adjoint ? lane : i;
    shared.strength[h][g] = a;
    shared.pole_ry[h][g] = pole_ry;
  }
}

__global__ void __launch_bounds__(kThreads) pole_rows(PoleRowsProduct in) {
  __shared__ TileShared shared;
  const int lane = static_cast<int>(threadIdx.x) % kTile,
            warp = static_cast<int>(threadIdx.x) / kTile;
  const std::int64_t n_g = in.model.n_g, g_0 = std::int64_t{blockIdx.y} * kTile,
                     m_0 = std::int64_t{blockIdx.z} * kStates,
                     at = std::int64_t{blockIdx.x} * kRows + warp;
  const bool there = at < in.n_rows;
  const PoleRow row = in.rows[there ? at : in.n_rows - 1];
  double2 y[kStates] = {};
  for (std::int64_t h_0 = 0; h_0 < n_g; h_0 += kTile) {
    __syncthreads();
    read_matrix(in, g_0, h_0, shared);
#pragma unroll
    for (int m = 0; m < kStates; ++m)
      shared.products[warp][m][lane] =
          m_0 + m < in.products.n_left && h_0 + lane < n_g
              ? in.products
                    .products[((m_0 + m) * in.products.n_right + row.band) * n_g + h_0 + lane]
              : double2{0.0, 0.0};
    __syncthreads();
    for (int h = 0; h < kTile; ++h) {
      const double f = factor_of(row, shared.pole_ry[h][lane], in.rules);
      const double2 a = shared.strength[h][lane];
      const double re = f * a.x, im = f * a.y;
#pragma unroll
      for (int m = 0; m < kStates; ++m) {
        const double2 c = shared.products[warp][m][h];
        y[m].x = fma(re, c.x, fma(im, c.y, y[m].x));
        y[m].y = fma(im, c.x, fma(-re, c.y, y[m].y));
      }
    }
  }
  if (!there || g_0 + lane >= n_g) return;
  for (int m = 0; m < kStates; ++m)
    if (m_0 + m < in.products.n_left)
      in.y[(at * in.products.n_left + m_0 + m) * n_g + g_0 + lane] = y[m];
}

unsigned blocks_of(std::int64_t n, int size) {
  return static_cast<unsigned>((n + size - 1) / size);
}

}  // namespace

void launch_pole_rows(const PoleRowsProduct& product, cudaStream_t stream) {
  if (product.n_rows == 0) return;
  pole_rows<<<dim3(blocks_of(product.n_rows, kRows), blocks_of(product.model.n_g, kTile),
                   blocks_of(product.products.n_left, kStates)),
              kThreads, 0, stream>>>(product);
  quasi::cuda::check_launch("rows of products with a pole matrix");
}

}  // namespace quasi::gw::cuda
