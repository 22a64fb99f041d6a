#pragma once

#include <vector>

#include "workers/backend/device/device_buffer.cuh"
#include "workers/backend/device/library_handle.cuh"

/// Odd-even reduction of a symmetric block-tridiagonal matrix by batched products. At every level
/// all odd columns are eliminated at once (docs/theory/mosfet.md 9.3).
namespace quasi::mosfet::cuda {

using quasi::cuda::DeviceBuffer;

/// Makes dense copies of diagonal couplings.
__global__ void spread_couplings_kernel(int nz, const double* couplings, double* blocks) {
  double* block = blocks + static_cast<long long>(blockIdx.x) * nz * nz;
  for (int k = threadIdx.x; k < nz * nz; k += blockDim.x)
    block[k] = k / nz == k % nz ? couplings[blockIdx.x * nz + k / nz] : 0.0;
}

__global__ void identity_kernel(int nodes, double* matrix) {
  double* column = matrix + static_cast<long long>(blockIdx.x) * nodes;
  for (int k = threadIdx.x; k < nodes; k += blockDim.x)
    column[k] = k == static_cast<int>(blockIdx.x) ? 1.0 : 0.0;
}

class BlockCyclicReduction {
 public:
  /// One level of the reduction. Blocks are column-major [nz][nz]. C_i couples i and i+1, and D is
  /// diagonal. The members belong to the odd columns j.
  struct Level {
    int n = 0;  ///< number of columns
    DeviceBuffer<double> diagonal, coupling;
    DeviceBuffer<double> inverse;  ///< D_j⁻¹; at the last level, that of the only column
    DeviceBuffer<double> left,
        right;  ///< C_jᵀ D_j⁻¹ into column j+1, C_{j−1} D_j⁻¹ into column j−1
    DeviceBuffer<double> left_rows, right_rows;  ///< transposes of left and right
    DeviceBuffer<double> factors;
    DeviceBuffer<double*> factor_of, inverse_of;
    int odd() const { return n / 2; }
    int links() const { return (n - 1) / 2; }  ///< odd columns with a column on their right
  };

  BlockCyclicReduction(int nx, int nz) : nz_(nz), nodes_(nx * nz) {
    for (int n = nx;; n -= n / 2) {
      Level l;
      l.n = n;
      const std::size_t square = static_cast<std::size_t>(nz) * nz,
                        eliminated = n == 1 ? 1 : static_cast<std::size_t>(n / 2);
      const auto blocks = [&](std::size_t count) {
        return DeviceBuffer<double>(count * square, "block reduction");
      };
      l.diagonal = blocks(static_cast<std::size_t>(n));
      l.coupling = blocks(static_cast<std::size_t>(n) - 1);
      for (DeviceBuffer<double>* one :
           {&l.inverse, &l.left, &l.right, &l.left_rows, &l.right_rows, &l.factors})
        *one = blocks(eliminated);
      std::vector<double*> from, to;
      for (std::size_t k = 0; k < eliminated; ++k) {
        from.push_back(l.factors.data() + k * square);
        to.push_back(l.inverse.data() + k * square);
      }
      l.factor_of = {from, "block reduction"};
      l.inverse_of = {to, "block reduction"};
      quasi::cuda::check(cudaStreamSynchronize(nullptr), "block reduction");
      levels_.push_back(std::move(l));
      if (n == 1) break;
    }
    pivots_ = {static_cast<std::size_t>(nx) * nz, "pivots"};
    info_ = {static_cast<std::size_t>(nx), "factor status"};
  }

  int levels() const { return static_cast<int>(levels_.size()); }
  const Level& level(int k) const { return levels_[static_cast<std::size_t>(k)]; }

  /// Eliminates the odd columns level by level. @param blocks [nx][nz][nz] on the diagonal,
  /// couplings [nx−1][nz]
  void factorise(const double* blocks, const double* couplings, cudaStream_t stream) {
    blas_.set_stream(stream);
    const long long square = static_cast<long long>(nz_) * nz_;
    const std::size_t bytes = sizeof(double) * square;
    const Level& first = levels_.front();
    copy(first.diagonal.data(), bytes, blocks, bytes, first.n, stream);
    if (first.n > 1)
      spread_couplings_kernel<<<static_cast<unsigned>(first.n - 1), 256, 0, stream>>>(
          nz_, couplings, first.coupling.data());
    for (std::size_t at = 0; at < levels_.size(); ++at) {
      const Level& l = levels_[at];
      const bool last = l.n == 1;
      const int odd = last ? 1 : l.odd();
      copy(l.factors.data(), bytes, l.diagonal.data() + (last ? 0 : square), 2 * bytes, odd,
           stream);
      quasi::cuda::check(
          quasi::cuda::late::cublasDgetrfBatched(blas_.get(), nz_, l.factor_of.data(), nz_,
                                                 pivots_.data(), info_.data(), odd),
          "block factors");
      quasi::cuda::check(quasi::cuda::late::cublasDgetriBatched(
                             blas_.get(), nz_, l.factor_of.data(), nz_, pivots_.data(),
                             l.inverse_of.data(), nz_, info_.data(), odd),
                         "block inverses");
      if (last) return;
      const Level& next = levels_[at + 1];
      const double *before = l.coupling.data(), *after = before + square;  // C_{j−1}, C_j
      const auto n = CUBLAS_OP_N, t = CUBLAS_OP_T;
      const auto product = [&](double factor, cublasOperation_t op_a, const double* a,
                               long long step_a, cublasOperation_t op_b, const double* b,
                               long long step_b, double keep, double* c, int count) {
        if (count > 0)
          quasi::cuda::check(quasi::cuda::late::cublasDgemmStridedBatched(
                                 blas_.get(), op_a, op_b, nz_, nz_, nz_, &factor, a, nz_, step_a, b,
                                 nz_, step_b, &keep, c, nz_, square, count),
                             "block reduction");
      };
      product(1.0, t, after, 2 * square, n, l.inverse.data(), square, 0.0, l.left.data(),
              l.links());
      product(1.0, n, l.inverse.data(), square, n, after, 2 * square, 0.0, l.left_rows.data(),
              l.links());
      product(1.0, n, before, 2 * square, n, l.inverse.data(), square, 0.0, l.right.data(), odd);
      product(1.0, n, l.inverse.data(), square, t, before, 2 * square, 0.0, l.right_rows.data(),
              odd);
      copy(next.diagonal.data(), bytes, l.diagonal.data(), 2 * bytes, next.n, stream);
      product(-1.0, n, l.left.data(), square, n, after, 2 * square, 1.0,
              next.diagonal.data() + square, l.links());
      product(-1.0, n, l.right.data(), square, t, before, 2 * square, 1.0, next.diagonal.data(),
              odd);
      product(-1.0, n, l.right.data(), square, n, after, 2 * square, 0.0, next.coupling.data(),
              l.links());
    }
  }

  /// Computes the whole inverse, [nodes][nodes], by solving for all columns of the identity at
  /// once. Needs factorise().
  void invert(double* inverse, cudaStream_t stream) {
    blas_.set_stream(stream);
    if (identity_.size() == 0)
      identity_ = {static_cast<std::size_t>(nodes_) * nodes_, "right sides of the inverse"};
    double* const right = identity_.data();
    identity_kernel<<<static_cast<unsigned>(nodes_), 256, 0, stream>>>(nodes_, right);
    const long long square = static_cast<long long>(nz_) * nz_;
    long long step = nz_;  // distance of neighbouring columns of a level
    const auto product = [&](double factor, cublasOperation_t op, const double* a, const double* b,
                             double keep, double* c, int count) {
      if (count > 0)
        quasi::cuda::check(quasi::cuda::late::cublasDgemmStridedBatched(
                               blas_.get(), op, CUBLAS_OP_N, nz_, nodes_, nz_, &factor, a, nz_,
                               square, b, nodes_, 2 * step, &keep, c, nodes_, 2 * step, count),
                           "inverse by blocks");
    };
    std::size_t at = 0;
    for (; at + 1 < levels_.size(); ++at, step *= 2) {
      const Level& l = levels_[at];
      product(-1.0, CUBLAS_OP_N, l.left.data(), right + step, 1.0, right + 2 * step, l.links());
      product(-1.0, CUBLAS_OP_N, l.right.data(), right + step, 1.0, right, l.odd());
    }
    product(1.0, CUBLAS_OP_N, levels_[at].inverse.data(), right, 0.0, inverse, 1);
    while (at-- > 0) {
      const Level& l = levels_[at];
      step /= 2;
      product(1.0, CUBLAS_OP_N, l.inverse.data(), right + step, 0.0, inverse + step, l.odd());
      product(-1.0, CUBLAS_OP_T, l.right.data(), inverse, 1.0, inverse + step, l.odd());
      product(-1.0, CUBLAS_OP_T, l.left.data(), inverse + 2 * step, 1.0, inverse + step, l.links());
    }
  }

 private:
  static void copy(double* to, std::size_t bytes, const double* from, std::size_t step_bytes,
                   int count, cudaStream_t stream) {
    quasi::cuda::check(
        cudaMemcpy2DAsync(to, bytes, from, step_bytes, bytes, static_cast<std::size_t>(count),
                          cudaMemcpyDeviceToDevice, stream),
        "block reduction");
  }

  int nz_, nodes_;
  std::vector<Level> levels_;
  DeviceBuffer<double> identity_;
  DeviceBuffer<int> pivots_, info_;
  quasi::cuda::CublasHandle blas_{nullptr};
};

}  // namespace quasi::mosfet::cuda
