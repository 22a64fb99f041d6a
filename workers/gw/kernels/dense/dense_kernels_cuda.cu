#include "workers/gw/kernels/dense/dense_kernels_cuda.cuh"

#include <algorithm>

#include "workers/gw/kernels/dense/dense_cuda.cuh"
#include "workers/gw/kernels/dense/eigen_memory.hpp"
#include "workers/gw/kernels/dense/real_copy_cuda.cuh"

namespace quasi::gw::cuda {

using quasi::cuda::DeviceBuffer;

void CudaDenseKernels::multiply_transposed(View<const Cplx, 2> a, View<const Cplx, 2> b,
                                           View<Cplx, 2> product) {
  context_->use();
  constexpr const char* kWhat = "matrix elements of the velocity";
  const int m = static_cast<int>(a.extent[0]), n = static_cast<int>(b.extent[0]),
            inner = static_cast<int>(a.extent[1]);
  const auto left = context_->to_device(a.data, a.size(), kWhat),
             right = context_->to_device(b.data, b.size(), kWhat);
  DeviceBuffer<double2> found(static_cast<std::size_t>(product.size()), kWhat);
  const double2 one{1.0, 0.0}, zero{0.0, 0.0};
  // In column-major order this is (n, m): Bᵀ of the transposed view times A.
  check(quasi::cuda::late::cublasZgemm(context_->blas(), CUBLAS_OP_T, CUBLAS_OP_N, n, m, inner,
                                       &one, right.data(), inner, left.data(), inner, &zero,
                                       found.data(), n),
        kWhat);
  context_->to_host(found.data(), product.size(), product.data, kWhat);
}

void CudaDenseKernels::invert_positive_definite(View<Cplx, 2> matrix) {
  context_->use();
  auto a = context_->to_device(matrix.data, matrix.size(), "matrix to invert");
  cuda::invert_positive_definite(context_->libraries(), a.data(), matrix.extent[0]);
  check(cudaStreamSynchronize(context_->stream()), "matrix to invert");
  context_->to_host(a.data(), matrix.size(), matrix.data, "inverse matrix");
}

void CudaDenseKernels::invert_general(View<Cplx, 2> matrix) {
  context_->use();
  auto a = context_->to_device(matrix.data, matrix.size(), "matrix to invert");
  const auto inverse =
      cuda::invert_general(context_->solver(), context_->stream(), a.data(), matrix.extent[0]);
  context_->to_host(inverse.data(), matrix.size(), matrix.data, "inverse matrix");
}

void CudaDenseKernels::eigen_hermitian(View<const Cplx, 2> matrix, View<double, 1> values,
                                       View<Cplx, 2> vectors) {
  context_->use();
  bool real = true;
#pragma omp parallel for schedule(static) reduction(&& : real)
  for (std::int64_t i = 0; i < matrix.size(); ++i) real = real && matrix.data[i].imag() == 0.0;
  const std::int64_t n = matrix.extent[0];
  if (real) {
    constexpr const char* kWhat = "diagonalisation";
    RealCopy copies(context_->stream(), kWhat);
    const DeviceBuffer<double> a(static_cast<std::size_t>(n * n), kWhat);
    copies.to_device(matrix.data, n * n, a.data());
    const auto all = cuda::eigen_columns(context_->solver(), context_->stream(), a.data(), n);
    std::copy(all.begin(), all.begin() + values.extent[0], values.data);
    copies.to_host(a.data(), vectors.size(), vectors.data);
    return;
  }
  auto a = context_->to_device(matrix.data, matrix.size(), "matrix to diagonalise");
  const auto all = cuda::eigen_hermitian(context_->solver(), context_->stream(), a.data(), n);
  std::copy(all.begin(), all.begin() + values.extent[0], values.data);
  context_->to_host(a.data(), vectors.size(), vectors.data, "eigenvectors");
}

}  // namespace quasi::gw::cuda

namespace quasi::gw {

CallMemory memory_of_eigen_hermitian_cuda(const Device& device, std::int64_t n, bool real) {
  use_device(device);
  const quasi::cuda::Stream stream(quasi::cuda::StreamPriority::kNormal);
  const quasi::cuda::CusolverHandle solver(stream.get());
  const cuda::EigenWorkSpace work = cuda::eigen_work_space(solver.get(), n, real);
  const std::int64_t matrix = (real ? 8 : 16) * n * n;
  return {.device_bytes = matrix + 8 * n + static_cast<std::int64_t>(work.device_bytes),
          .host_bytes = static_cast<std::int64_t>(work.host_bytes)};
}

}  // namespace quasi::gw
