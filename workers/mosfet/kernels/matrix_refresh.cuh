#pragma once

#include <algorithm>

#include "workers/mosfet/kernels/cuda_libraries.cuh"
#include "workers/mosfet/kernels/refresh_cuda.cuh"

namespace quasi::mosfet::cuda {

using quasi::cuda::check_launch;
using quasi::cuda::DeviceBuffer;

/// Renews a point's frozen Newton matrix and inverts it. The scratch is shared by all points.
class MatrixRefresh {
 public:
  void allocate(const DeviceProblem& p) {
    const auto nodes = static_cast<std::size_t>(p.nx) * p.nz;
    const auto n = static_cast<std::size_t>(p.interior), nx = static_cast<std::size_t>(p.nx);
    const std::size_t columns = nx * p.n_families, rank = p.n_levels * n;
    energies_ = {columns * n, "all levels"};
    vectors_ = {columns * n * n, "all wave functions"};
    products_ = {nx * rank * n, "pair products"};
    weighted_ = {nx * rank * n, "weighted pair products"};
    responses_ = {nx * n * n, "density response"};
    matrix_ = {nodes * nodes, "Newton matrix"};
    info_ = {2, "factor status"};
    int factor = 0, inverse = 0;
    const int order = static_cast<int>(nodes);
    check_solver(cusolverDnDpotrf_bufferSize(libraries_.solver(), CUBLAS_FILL_MODE_LOWER, order, matrix_.data(), order, &factor), "Cholesky factor");
    check_solver(cusolverDnDpotri_bufferSize(libraries_.solver(), CUBLAS_FILL_MODE_LOWER, order, matrix_.data(), order, &inverse), "inverse");
    workspace_ = {static_cast<std::size_t>(std::max(factor, inverse)), "workspace of the inverse"};
  }

  /// @param inverse  [nodes][inverse_stride(nodes)] out
  void run(const DeviceProblem& p, const DevicePoint& q, __nv_bfloat16* inverse, cudaStream_t stream) {
    const int n = p.interior, nx = p.nx, nf = p.n_families;
    const int pairs = nf * nx * n, rank = p.n_levels * n, nodes = nx * p.nz;
    if (n <= 63)
      all_states_kernel<63><<<(pairs + 63) / 64, 64, 0, stream>>>(p, q.potential, energies_.data(), vectors_.data());
    else if (n <= 127)
      all_states_kernel<127><<<(pairs + 63) / 64, 64, 0, stream>>>(p, q.potential, energies_.data(), vectors_.data());
    else
      all_states_kernel<kLargestInterior><<<(pairs + 63) / 64, 64, 0, stream>>>(p, q.potential, energies_.data(), vectors_.data());
    check_launch("all states");
    pair_products_kernel<<<dim3(rank, nx), 64, 0, stream>>>(p, q, energies_.data(),
                                                                 vectors_.data(), products_.data(), weighted_.data());
    check_launch("pair products");
    libraries_.use(stream);
    const double one = 1.0, zero = 0.0;
    // Row-major [rank][n] is column-major n × rank: A = weighted · productsᵀ.
    check_blas(cublasDgemmStridedBatched(libraries_.blas(), CUBLAS_OP_N, CUBLAS_OP_T, n, n, rank, &one,
                                               weighted_.data(), n, static_cast<long long>(rank) * n, products_.data(),
                                               n, static_cast<long long>(rank) * n, &zero, responses_.data(), n,
                                               static_cast<long long>(n) * n, nx),
                     "density response");
    assemble_kernel<<<nodes, 256, 0, stream>>>(p, responses_.data(), matrix_.data());
    check_launch("Newton matrix");
    const auto lower = CUBLAS_FILL_MODE_LOWER;
    check_solver(cusolverDnDpotrf(libraries_.solver(), lower, nodes, matrix_.data(), nodes, workspace_.data(),
                                        static_cast<int>(workspace_.size()), info_.data()), "Cholesky factor");
    check_solver(cusolverDnDpotri(libraries_.solver(), lower, nodes, matrix_.data(), nodes, workspace_.data(),
                                        static_cast<int>(workspace_.size()), info_.data() + 1), "inverse");
    narrow_inverse_kernel<<<nodes, 256, 0, stream>>>(nodes, matrix_.data(), inverse);
    check_launch("inverse");
  }

 private:
  DeviceBuffer<double> energies_, vectors_, products_, weighted_, responses_, matrix_, workspace_;
  DeviceBuffer<int> info_;
  LinearAlgebra libraries_;
};

}  // namespace quasi::mosfet::cuda
