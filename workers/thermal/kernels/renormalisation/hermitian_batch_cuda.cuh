#pragma once

#include <cstdint>

#include <cusolverDn.h>

#include "workers/backend/complex.hpp"
#include "workers/backend/device/device_buffer.cuh"
#include "workers/backend/device/library_handle.cuh"

namespace quasi::thermal {

inline void destroy_jacobi_settings(syevjInfo_t settings) {
  cuda::late::cusolverDnDestroySyevjInfo(settings);
}

/// Diagonalises many Hermitian matrices of one order by cuSOLVER's batched Jacobi method, on the
/// default stream: the dynamical matrices of docs/theory/thermal.md 14. Batches have a fixed size,
/// so that bits do not depend on the free memory.
class HermitianBatchCuda {
 public:
  /// Takes the device in use. @param nb  order of the matrices
  HermitianBatchCuda(int nb, std::int64_t n_matrices);
  /// @param matrices  [n_matrices][nb][nb] column-major, upper triangles; replaced by eigenvectors,
  ///                  [n_matrices][branch][component]
  /// @param values    [n_matrices][nb], rising
  /// @throws NotConverged if a matrix was not diagonalised
  void diagonalise(Complex<double>* matrices, double* values);

 private:
  int nb_;
  std::int64_t n_matrices_;
  std::int64_t batch_;  ///< matrices of one call of the library
  cuda::CusolverHandle solver_;
  cuda::OwnedHandle<syevjInfo_t, destroy_jacobi_settings> settings_;
  cuda::DeviceBuffer<double2> work_;
  cuda::DeviceBuffer<int> info_;
};

}  // namespace quasi::thermal
