#pragma once

#include <memory>

#include "workers/mosfet/kernels/electrostatics/cyclic_reduction.cuh"
#include "workers/mosfet/kernels/electrostatics/refresh_cuda.cuh"

namespace quasi::mosfet::cuda {

using quasi::cuda::check_launch;
using quasi::cuda::DeviceBuffer;

/// Recomputes a point's frozen Newton matrix and inverts it (docs/theory/mosfet.md 9.2, 9.3). All
/// points share the scratch memory.
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
    blocks_ = {nodes * p.nz, "Newton matrix"};
    couplings_ = {nodes, "Newton matrix"};
    inverse_ = {nodes * nodes, "inverse of the Newton matrix"};
    reduction_ = std::make_unique<BlockCyclicReduction>(p.nx, p.nz);
  }

  /// Computes the inverse for one point. @param inverse  [nodes][inverse_stride(nodes)] out
  void run(const DeviceProblem& p, const DevicePoint& q, __nv_bfloat16* inverse,
           cudaStream_t stream) {
    const int n = p.interior, nx = p.nx, nf = p.n_families;
    const int pairs = nf * nx * n, rank = p.n_levels * n, nodes = nx * p.nz;
    if (n <= 63)
      all_states_kernel<63>
          <<<(pairs + 63) / 64, 64, 0, stream>>>(p, q.potential, energies_.data(), vectors_.data());
    else if (n <= 127)
      all_states_kernel<127>
          <<<(pairs + 63) / 64, 64, 0, stream>>>(p, q.potential, energies_.data(), vectors_.data());
    else
      all_states_kernel<kLargestInterior>
          <<<(pairs + 63) / 64, 64, 0, stream>>>(p, q.potential, energies_.data(), vectors_.data());
    check_launch("all states");
    pair_products_kernel<<<dim3(rank, nx), 64, 0, stream>>>(p, q, energies_.data(), vectors_.data(),
                                                            products_.data(), weighted_.data());
    check_launch("pair products");
    blas_.set_stream(stream);
    const double one = 1.0, zero = 0.0;
    // A row-major [rank][n] array is column-major n × rank, so A = weighted · productsᵀ.
    quasi::cuda::check(
        quasi::cuda::late::cublasDgemmStridedBatched(
            blas_.get(), CUBLAS_OP_N, CUBLAS_OP_T, n, n, rank, &one, weighted_.data(), n,
            static_cast<long long>(rank) * n, products_.data(), n, static_cast<long long>(rank) * n,
            &zero, responses_.data(), n, static_cast<long long>(n) * n, nx),
        "density response");
    assemble_kernel<<<nodes, 64, 0, stream>>>(p, responses_.data(), blocks_.data(),
                                              couplings_.data());
    check_launch("Newton matrix");
    reduction_->factorise(blocks_.data(), couplings_.data(), stream);
    reduction_->invert(inverse_.data(), stream);
    narrow_inverse_kernel<<<nodes, 256, 0, stream>>>(nodes, inverse_.data(), inverse);
    check_launch("inverse");
  }

 private:
  DeviceBuffer<double> energies_, vectors_, products_, weighted_, responses_, blocks_, couplings_,
      inverse_;
  std::unique_ptr<BlockCyclicReduction> reduction_;
  quasi::cuda::CublasHandle blas_{nullptr};
};

}  // namespace quasi::mosfet::cuda
