#pragma once

#include <cstdint>
#include <vector>

#include "workers/backend/device/library_handle.cuh"
#include "workers/gw/kernels/pole_sums/pole_sum_kernels.hpp"

namespace quasi::gw::cuda {

using quasi::cuda::check;

using Products = OffDiagonalOptions::Products;

/// Row-major matrix in device memory; `stride` is the distance between rows in numbers.
struct DeviceMatrix {
  const double2* data;
  std::int64_t stride;
};

/// The product C[m][n] = alpha A[m][k]·B[k][n] + beta C, row-major in device memory.
struct MatrixProduct {
  std::int64_t m, n, k;
  DeviceMatrix a, b;
  double2* c;
  std::int64_t c_stride;  ///< distance between rows of C in numbers
  double alpha = 1.0, beta = 0.0;
};
/// Computes one product. @throws InvalidInput if the library does not offer the requested way
void multiply(cublasHandle_t blas, Products way, const MatrixProduct& product);

/// A batch of C_i[m][n] = alpha A_i[m][k]·B_i[n][k]^H + beta C_i; `*_step` is the distance between
/// consecutive i in numbers.
struct AdjointBatch {
  std::int64_t m, n, k;
  double alpha, beta;
  DeviceMatrix a, b;
  double2* c;
  std::int64_t c_stride;
  std::int64_t a_step, b_step, c_step;
  std::int64_t count;
};
/// Computes the products of a batch.
void multiply_adjoint(cublasHandle_t blas, const AdjointBatch& batch);

/// Computes a list of products C_i = alpha A_i·B_i^H of matrices anywhere in device memory. They
/// are complete on return.
struct AdjointList {
  std::int64_t m, n, k;
  double alpha;
  std::int64_t a_stride, b_stride, c_stride;
  const std::vector<const double2*>& a;
  const std::vector<const double2*>& b;
  const std::vector<double2*>& c;
};
/// Computes the products of a list.
void multiply_adjoint(cublasHandle_t blas, const AdjointList& list, cudaStream_t stream);

/// Returns ‖(C − A B) v‖ / ‖C v‖ for a fixed pseudo-random v, by native matrix-vector products.
double product_residual(cublasHandle_t blas, cudaStream_t stream, const MatrixProduct& product);

}  // namespace quasi::gw::cuda
