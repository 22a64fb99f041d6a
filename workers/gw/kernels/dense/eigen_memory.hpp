#pragma once

#include <cstdint>

#include "workers/backend/device/device.hpp"

namespace quasi::gw {

/// Memory that a call takes beside its arguments, bytes.
struct CallMemory {
  std::int64_t device_bytes = 0;  ///< of a GPU
  std::int64_t host_bytes = 0;
};

/// Returns the memory of DenseKernels::eigen_hermitian() for a matrix of order n (docs/theory/gw.md
/// 12). It has a copy of the matrix, which the eigenvectors replace, all eigenvalues, and the work
/// space of the library. LAPACK documents its work space; cuSOLVER is asked for its own.
/// @param real  the matrix has no imaginary part
/// @throws BackendAbsent for a CUDA device in a build without CUDA
CallMemory memory_of_eigen_hermitian(const Device& device, std::int64_t n, bool real);
CallMemory memory_of_eigen_hermitian_cuda(const Device& device, std::int64_t n, bool real);

}  // namespace quasi::gw
