#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "workers/backend/device/device_buffer.cuh"
#include "workers/gw/kernels/dense/products_cuda.cuh"

namespace quasi::gw::cuda {
namespace {

using quasi::cuda::DeviceBuffer;

int narrow(std::int64_t value) {
  if (value > 2147483647)
    throw InvalidInput("a matrix dimension of " + std::to_string(value) +
                       " exceeds the limit of cuBLAS; use smaller blocks of bands");
  return static_cast<int>(value);
}

/// Computes y = A x for a row-major A[m][n].
void apply(cublasHandle_t blas, std::int64_t m, std::int64_t n, DeviceMatrix a, const double2* x,
           double2* y) {
  const double2 one{1.0, 0.0}, zero{0.0, 0.0};
  check(quasi::cuda::late::cublasZgemv(blas, CUBLAS_OP_T, narrow(n), narrow(m), &one, a.data,
                                       narrow(a.stride), x, 1, &zero, y, 1),
        "residual of a product");
}

}  // namespace

void multiply(cublasHandle_t blas, Products way, const MatrixProduct& product) {
  const double2 alpha2{product.alpha, 0.0}, beta2{product.beta, 0.0};
  // Row-major C = A B is column-major Cᵀ = Bᵀ Aᵀ, and each array is the transpose of itself.
  const int rows = narrow(product.n), columns = narrow(product.m), inner = narrow(product.k);
  const int ldb = narrow(product.b.stride), lda = narrow(product.a.stride),
            ldc = narrow(product.c_stride);
  const double2 *const a = product.a.data, *const b = product.b.data;
  double2* const c = product.c;
  switch (way) {
    case Products::kNative:
      check(quasi::cuda::late::cublasZgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, rows, columns, inner,
                                           &alpha2, b, ldb, a, lda, &beta2, c, ldc),
            "complex product");
      return;
    case Products::kThreeMultiplications:
      check(quasi::cuda::late::cublasZgemm3m(blas, CUBLAS_OP_N, CUBLAS_OP_N, rows, columns, inner,
                                             &alpha2, b, ldb, a, lda, &beta2, c, ldc),
            "complex product of three real ones");
      return;
    case Products::kEmulated: {
      check(quasi::cuda::late::cublasSetEmulationStrategy(blas, CUBLAS_EMULATION_STRATEGY_EAGER),
            "asking for emulated FP64");
      const cublasStatus_t status = quasi::cuda::late::cublasGemmEx(
          blas, CUBLAS_OP_N, CUBLAS_OP_N, rows, columns, inner, &alpha2, b, CUDA_C_64F, ldb, a,
          CUDA_C_64F, lda, &beta2, c, CUDA_C_64F, ldc, CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT,
          CUBLAS_GEMM_DEFAULT);
      if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH)
        throw InvalidInput(
            std::string("this cuBLAS does not emulate FP64 for complex products on this "
                        "device (") +
            quasi::cuda::late::cublasGetStatusString(status) + "); ask for native products");
      check(status, "emulated complex product");
      return;
    }
  }
}

void multiply_adjoint(cublasHandle_t blas, const AdjointBatch& batch) {
  const double2 alpha{batch.alpha, 0.0}, beta{batch.beta, 0.0};
  check(
      quasi::cuda::late::cublasZgemmStridedBatched(
          blas, CUBLAS_OP_C, CUBLAS_OP_N, narrow(batch.n), narrow(batch.m), narrow(batch.k), &alpha,
          batch.b.data, narrow(batch.b.stride), batch.b_step, batch.a.data, narrow(batch.a.stride),
          batch.a_step, &beta, batch.c, narrow(batch.c_stride), batch.c_step, narrow(batch.count)),
      "batch of complex products");
}

void multiply_adjoint(cublasHandle_t blas, const AdjointList& list, cudaStream_t stream) {
  constexpr const char* kWhat = "list of complex products";
  const DeviceBuffer<const double2*> a(list.a, kWhat), b(list.b, kWhat);
  const DeviceBuffer<double2*> c(list.c, kWhat);
  check(cudaDeviceSynchronize(), kWhat);
  const double2 alpha{list.alpha, 0.0}, zero{0.0, 0.0};
  check(quasi::cuda::late::cublasZgemmBatched(
            blas, CUBLAS_OP_C, CUBLAS_OP_N, narrow(list.n), narrow(list.m), narrow(list.k), &alpha,
            b.data(), narrow(list.b_stride), a.data(), narrow(list.a_stride), &zero, c.data(),
            narrow(list.c_stride), narrow(static_cast<std::int64_t>(list.a.size()))),
        kWhat);
  check(cudaStreamSynchronize(stream), kWhat);
}

double product_residual(cublasHandle_t blas, cudaStream_t stream, const MatrixProduct& product) {
  constexpr const char* kWhat = "residual of a product";
  const auto [m, n, k] = std::array{product.m, product.n, product.k};
  std::vector<double2> v(static_cast<std::size_t>(n));
  std::uint64_t state = 0x9e3779b97f4a7c15u;
  for (double2& one : v)
    for (double* part : {&one.x, &one.y}) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      *part = static_cast<double>(state >> 11) * 0x1p-52 - 1.0;
    }
  const DeviceBuffer<double2> v_there(v, kWhat);
  DeviceBuffer<double2> bv(static_cast<std::size_t>(k), kWhat);
  DeviceBuffer<double2> abv(static_cast<std::size_t>(m), kWhat),
      cv(static_cast<std::size_t>(m), kWhat);
  check(cudaDeviceSynchronize(), kWhat);
  apply(blas, k, n, product.b, v_there.data(), bv.data());
  apply(blas, m, k, product.a, bv.data(), abv.data());
  apply(blas, m, n, {product.c, product.c_stride}, v_there.data(), cv.data());
  check(cudaStreamSynchronize(stream), kWhat);
  const auto expected = quasi::cuda::to_host(abv, kWhat);
  const auto found = quasi::cuda::to_host(cv, kWhat);
  double difference = 0.0, size = 0.0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    difference += std::pow(found[i].x - expected[i].x, 2) + std::pow(found[i].y - expected[i].y, 2);
    size += std::pow(found[i].x, 2) + std::pow(found[i].y, 2);
  }
  return std::sqrt(difference / size);
}

}  // namespace quasi::gw::cuda
