#include "workers/gw/kernels/dense/blocked_inverse_cuda.cuh"

#include <algorithm>
#include <string>

#include "workers/backend/device/launch_cuda.cuh"
#include "workers/gw/kernels/dense/dense_cuda.cuh"

namespace quasi::gw::cuda {
namespace {

using quasi::cuda::DeviceBuffer;
using quasi::cuda::for_each_index;
namespace late = quasi::cuda::late;

constexpr const char* kWhat = "inversion by blocks";

/// A block of a column-major matrix with leading dimension `ld`.
template <typename T>
struct Block {
  T* data;
  int rows, columns, ld;
};

/// C = sign A B + keep C, or with the adjoint of A or B.
template <typename T>
struct Product {
  cublasOperation_t op_a, op_b;
  int inner;
  double sign;
  Block<T> a, b;
  double keep;
  Block<T> c;
};

// Overloads of the library's functions for real and complex matrices.
cublasStatus_t gemm(cublasHandle_t blas, const Product<double>& p) {
  return late::cublasDgemm(blas, p.op_a, p.op_b, p.c.rows, p.c.columns, p.inner, &p.sign, p.a.data,
                           p.a.ld, p.b.data, p.b.ld, &p.keep, p.c.data, p.c.ld);
}
cublasStatus_t gemm(cublasHandle_t blas, const Product<double2>& p) {
  const double2 sign{p.sign, 0.0}, keep{p.keep, 0.0};
  return late::cublasZgemm(blas, p.op_a, p.op_b, p.c.rows, p.c.columns, p.inner, &sign, p.a.data,
                           p.a.ld, p.b.data, p.b.ld, &keep, p.c.data, p.c.ld);
}
cublasStatus_t trsm(cublasHandle_t blas, cublasSideMode_t side, cublasOperation_t op, double sign,
                    const Block<double>& a, const Block<double>& b) {
  return late::cublasDtrsm(blas, side, CUBLAS_FILL_MODE_LOWER, op, CUBLAS_DIAG_NON_UNIT, b.rows,
                           b.columns, &sign, a.data, a.ld, b.data, b.ld);
}
cublasStatus_t trsm(cublasHandle_t blas, cublasSideMode_t side, cublasOperation_t op, double sign,
                    const Block<double2>& a, const Block<double2>& b) {
  const double2 factor{sign, 0.0};
  return late::cublasZtrsm(blas, side, CUBLAS_FILL_MODE_LOWER, op, CUBLAS_DIAG_NON_UNIT, b.rows,
                           b.columns, &factor, a.data, a.ld, b.data, b.ld);
}
int potrf_size(cusolverDnHandle_t solver, const Block<double>& a) {
  int size = 0;
  check(late::cusolverDnDpotrf_bufferSize(solver, CUBLAS_FILL_MODE_LOWER, a.rows, a.data, a.ld,
                                          &size),
        kWhat);
  return size;
}
int potrf_size(cusolverDnHandle_t solver, const Block<double2>& a) {
  int size = 0;
  check(late::cusolverDnZpotrf_bufferSize(solver, CUBLAS_FILL_MODE_LOWER, a.rows, a.data, a.ld,
                                          &size),
        kWhat);
  return size;
}
cusolverStatus_t potrf(cusolverDnHandle_t solver, const Block<double>& a,
                       const DeviceBuffer<double>& work, int* info) {
  return late::cusolverDnDpotrf(solver, CUBLAS_FILL_MODE_LOWER, a.rows, a.data, a.ld, work.data(),
                                static_cast<int>(work.size()), info);
}
cusolverStatus_t potrf(cusolverDnHandle_t solver, const Block<double2>& a,
                       const DeviceBuffer<double2>& work, int* info) {
  return late::cusolverDnZpotrf(solver, CUBLAS_FILL_MODE_LOWER, a.rows, a.data, a.ld, work.data(),
                                static_cast<int>(work.size()), info);
}

__device__ void set_real(double& element, double value) { element = value; }
__device__ void set_real(double2& element, double value) { element = {value, 0.0}; }

template <typename T>
struct MakeUnit {
  Block<T> block;
  __device__ void operator()(std::int64_t index) const {
    set_real(block.data[index], index / block.ld == index % block.ld ? 1.0 : 0.0);
  }
};

template <typename T>
class BlockedInverse {
 public:
  BlockedInverse(const DenseLibraries& libraries, T* matrix, std::int64_t n, std::int64_t block)
      : libraries_(libraries),
        matrix_(matrix),
        n_(n),
        block_(std::min(block, n)),
        n_blocks_((n + block_ - 1) / block_),
        scratch_(static_cast<std::size_t>(block_ * block_), kWhat) {}

  /// A = L L†.
  void factorize() {
    DeviceBuffer<int> info(1, kWhat);
    DeviceBuffer<T> work(
        static_cast<std::size_t>(potrf_size(libraries_.solver, at(0, 0, order(0)))), kWhat);
    for (std::int64_t k = 0; k < n_blocks_; ++k) {
      check(potrf(libraries_.solver, at(k, k, order(k)), work, info.data()), kWhat);
      check(cudaStreamSynchronize(libraries_.stream), kWhat);
      if (const int minor = quasi::cuda::to_host(info, kWhat).front(); minor > 0)
        throw NotConverged("dielectric matrix of order " + std::to_string(n_) +
                           " is not positive definite at its leading minor " +
                           std::to_string(k * block_ + minor));
      if (k + 1 == n_blocks_) break;
      const Block<T> below = at(k + 1, k, rows_from(k + 1));
      check(trsm(libraries_.blas, CUBLAS_SIDE_RIGHT, CUBLAS_OP_C, 1.0, at(k, k, order(k)), below),
            kWhat);
      for (std::int64_t j = k + 1; j < n_blocks_; ++j)
        multiply({CUBLAS_OP_N, CUBLAS_OP_C, order(k), -1.0, at(j, k, rows_from(j)),
                  at(j, k, order(j)), 1.0, at(j, j, rows_from(j))});
    }
  }

  /// T = L⁻¹, from the last column of blocks to the first. T_ij = − Σ_l T_il L_lj (L_jj)⁻¹ with
  /// j < l ≤ i needs the rows of L_lj above and at i, so that i descends. The blocks of the
  /// diagonal get zeros above the diagonal.
  void invert_triangle() {
    for (std::int64_t j = n_blocks_ - 1; j >= 0; --j) {
      for (std::int64_t i = n_blocks_ - 1; i > j; --i) {
        const Block<T> sum = scratch(order(i), order(j));
        for (std::int64_t l = j + 1; l <= i; ++l)
          multiply({CUBLAS_OP_N, CUBLAS_OP_N, order(l), 1.0, at(i, l, order(i)), at(l, j, order(l)),
                    l == j + 1 ? 0.0 : 1.0, sum});
        check(trsm(libraries_.blas, CUBLAS_SIDE_RIGHT, CUBLAS_OP_N, -1.0, at(j, j, order(j)), sum),
              kWhat);
        store(sum, at(i, j, order(i)));
      }
      const Block<T> unit = scratch(order(j), order(j));
      for_each_index(static_cast<std::int64_t>(unit.rows) * unit.columns, MakeUnit<T>{unit}, kWhat,
                     libraries_.stream);
      check(trsm(libraries_.blas, CUBLAS_SIDE_LEFT, CUBLAS_OP_N, 1.0, at(j, j, order(j)), unit),
            kWhat);
      store(unit, at(j, j, order(j)));
    }
  }

  /// A⁻¹ = T† T, by rows of blocks from the first to the last: row i needs the rows k ≥ i of T.
  void multiply_triangle() {
    for (std::int64_t i = 0; i < n_blocks_; ++i)
      for (std::int64_t j = 0; j <= i; ++j) {
        const Block<T> sum = scratch(order(i), order(j));
        multiply({CUBLAS_OP_C, CUBLAS_OP_N, rows_from(i), 1.0, at(i, i, rows_from(i)),
                  at(i, j, rows_from(i)), 0.0, sum});
        store(sum, at(i, j, order(i)));
      }
    check(cudaStreamSynchronize(libraries_.stream), kWhat);
  }

 private:
  void multiply(const Product<T>& product) const { check(gemm(libraries_.blas, product), kWhat); }
  int rows_from(std::int64_t block) const { return static_cast<int>(n_ - block * block_); }
  int order(std::int64_t block) const {
    return static_cast<int>(std::min(block_, n_ - block * block_));
  }
  /// The rows that begin with block i of the columns of block j.
  Block<T> at(std::int64_t i, std::int64_t j, int rows) const {
    return {matrix_ + i * block_ + j * block_ * n_, rows, order(j), static_cast<int>(n_)};
  }
  Block<T> scratch(int rows, int columns) const { return {scratch_.data(), rows, columns, rows}; }
  void store(const Block<T>& from, const Block<T>& to) const {
    check(cudaMemcpy2DAsync(to.data, sizeof(T) * to.ld, from.data, sizeof(T) * from.ld,
                            sizeof(T) * from.rows, from.columns, cudaMemcpyDeviceToDevice,
                            libraries_.stream),
          kWhat);
  }

  DenseLibraries libraries_;
  T* matrix_;
  std::int64_t n_, block_, n_blocks_;
  DeviceBuffer<T> scratch_;
};

template <typename T>
void invert(const DenseLibraries& libraries, T* matrix, std::int64_t n, std::int64_t block) {
  BlockedInverse<T> inverse(libraries, matrix, n, block);
  inverse.factorize();
  inverse.invert_triangle();
  inverse.multiply_triangle();
}

}  // namespace

void invert_in_blocks(const DenseLibraries& libraries, double* matrix, std::int64_t n,
                      std::int64_t block) {
  invert(libraries, matrix, n, block);
}

void invert_in_blocks(const DenseLibraries& libraries, double2* matrix, std::int64_t n,
                      std::int64_t block) {
  invert(libraries, matrix, n, block);
}

}  // namespace quasi::gw::cuda
