#pragma once

#include <cstdint>
#include <vector>

#include "workers/backend/device/device_buffer.cuh"
#include "workers/backend/device/library_handle.cuh"

namespace quasi::gw::cuda {

using quasi::cuda::check;

/// C[i][j] += sign Σ_p a_p*(i) a_p(j) for the triangle i ≤ j of a row-major [n][n], a row-major
/// [n_rows][n]. The library's own Hermitian product: blocks of general products and products of
/// real and imaginary planes were tried and are slower (docs/performance/README.md).
void add_hermitian(cublasHandle_t blas, std::int64_t n, std::int64_t n_rows, double sign,
                   const double2* a, double2* c);

/// The same in real arithmetic: C += sign Aᵀ A, triangle i ≤ j.
void add_symmetric(cublasHandle_t blas, std::int64_t n, std::int64_t n_rows, double sign,
                   const double* a, double* c);

/// Triangle i ≤ j of a complex matrix += that of a real one, which becomes 0.
void move_real_part(double2* matrix, double* real, std::int64_t n, cudaStream_t stream);

/// Fills i > j of a row-major Hermitian matrix from i < j.
void mirror_upper(double2* matrix, std::int64_t n, cudaStream_t stream);

/// In place on a row-major matrix in device memory. @throws NotConverged naming the leading minor.
void invert_positive_definite(cusolverDnHandle_t solver, cudaStream_t stream, double2* matrix,
                              std::int64_t n);
/// @returns the inverse. @throws NotConverged if singular.
quasi::cuda::DeviceBuffer<double2> invert_general(cusolverDnHandle_t solver, cudaStream_t stream,
                                                  double2* matrix, std::int64_t n);
/// All eigenvalues, ascending; rows of `matrix` become the eigenvectors.
std::vector<double> eigen_hermitian(cusolverDnHandle_t solver, cudaStream_t stream, double2* matrix,
                                    std::int64_t n);
/// The same for a matrix whose imaginary parts are 0; its eigenvectors are real. Only the first
/// n_lowest rows are filled.
std::vector<double> eigen_symmetric(cusolverDnHandle_t solver, cudaStream_t stream, double2* matrix,
                                    std::int64_t n, std::int64_t n_lowest);

}  // namespace quasi::gw::cuda
