#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cusolverDn.h>

#include <cstdint>

/// Inverse of a large positive definite matrix by blocks, as ε of docs/theory/gw.md 4 is.
/// cuSOLVER's potrf and potri count the elements of a matrix in 32 bits and refuse orders above
/// 46,340.
namespace quasi::gw::cuda {

/// The handles of one device, with one stream.
struct DenseLibraries {
  cublasHandle_t blas;
  cusolverDnHandle_t solver;
  cudaStream_t stream;
};

/// Replaces the lower triangle of a column-major matrix [n][n] in device memory by that of its
/// inverse; the elements above the diagonal are lost. With A = L L†, T = L⁻¹ and A⁻¹ = T† T, each
/// of the three steps works in place on blocks, as LAPACK's potrf, trtri and lauum do. It needs one
/// block of further memory.
/// @param block  order of a block; block · n must be below 2³¹
/// @throws NotConverged naming the leading minor that is not positive
void invert_in_blocks(const DenseLibraries& libraries, double* matrix, std::int64_t n,
                      std::int64_t block);
/// The same for a Hermitian matrix.
void invert_in_blocks(const DenseLibraries& libraries, double2* matrix, std::int64_t n,
                      std::int64_t block);

}  // namespace quasi::gw::cuda
