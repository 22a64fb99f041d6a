#pragma once

#include <cstdint>
#include <vector>

#include "workers/backend/device/device_buffer.cuh"
#include "workers/backend/device/library_handle.cuh"
#include "workers/gw/kernels/dense/blocked_inverse_cuda.cuh"

namespace quasi::gw::cuda {

using quasi::cuda::check;

/// Adds C[i][j] += sign Σ_p a_p*(i) a_p(j) for the triangle i ≤ j of a row-major [n][n] matrix; a
/// is row-major [n_rows][n]. It uses the library's Hermitian product. Blocks of general products
/// and products of real and imaginary planes are slower (docs/performance/README.md).
void add_hermitian(cublasHandle_t blas, std::int64_t n, std::int64_t n_rows, double sign,
                   const double2* a, double2* c);

/// Adds C += sign Aᵀ A in real arithmetic, for the triangle i ≤ j.
void add_symmetric(cublasHandle_t blas, std::int64_t n, std::int64_t n_rows, double sign,
                   const double* a, double* c);

/// Adds the triangle i ≤ j of a real matrix to that of a complex one and sets the real one to 0.
void move_real_part(double2* matrix, double* real, std::int64_t n, cudaStream_t stream);

/// True if no number has an imaginary part.
bool is_real(const double2* values, std::int64_t count, cudaStream_t stream);
/// Returns the real parts.
quasi::cuda::DeviceBuffer<double> real_parts(const double2* values, std::int64_t count,
                                             cudaStream_t stream);

/// Fills i > j of a row-major Hermitian matrix from i < j.
void mirror_upper(double2* matrix, std::int64_t n, cudaStream_t stream);

/// Inverts a row-major matrix in device memory in place. @throws NotConverged naming the leading
/// minor.
void invert_positive_definite(const DenseLibraries& libraries, double2* matrix, std::int64_t n);
/// Inverts a real symmetric matrix in place. It takes a quarter of the operations and one block of
/// further memory. @throws NotConverged naming the leading minor.
void invert_positive_definite(const DenseLibraries& libraries, double* matrix, std::int64_t n);
/// Inverts a general matrix. @returns the inverse. @throws NotConverged if it is singular.
quasi::cuda::DeviceBuffer<double2> invert_general(cusolverDnHandle_t solver, cudaStream_t stream,
                                                  double2* matrix, std::int64_t n);
/// Returns all eigenvalues of a column-major Hermitian matrix, ascending, from its lower triangle.
/// The columns of `matrix` become the eigenvectors.
std::vector<double> eigen_columns(cusolverDnHandle_t solver, cudaStream_t stream, double* matrix,
                                  std::int64_t n);
std::vector<double> eigen_columns(cusolverDnHandle_t solver, cudaStream_t stream, double2* matrix,
                                  std::int64_t n);
/// Returns all eigenvalues, ascending. Rows of `matrix` become the eigenvectors.
std::vector<double> eigen_hermitian(cusolverDnHandle_t solver, cudaStream_t stream, double2* matrix,
                                    std::int64_t n);
/// Holds the bytes of the work space of a diagonalisation with all eigenvectors.
struct EigenWorkSpace {
  std::size_t device_bytes = 0;
  std::size_t host_bytes = 0;
};
/// Returns the work space that cuSOLVER asks for, without a matrix.
EigenWorkSpace eigen_work_space(cusolverDnHandle_t solver, std::int64_t n, bool real);

}  // namespace quasi::gw::cuda
