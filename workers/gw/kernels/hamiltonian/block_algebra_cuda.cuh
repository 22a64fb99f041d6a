#pragma once

#include <cstdint>
#include <vector>

#include "workers/gw/kernels/cuda_context.cuh"

// Products, orthonormalisation and diagonalisation of blocks of states in device memory, as
// block_algebra.hpp has them for the processor (docs/theory/gw.md 9.2). States [n_states][n_pw] are
// the columns of a column-major matrix. T is double or double2.
namespace quasi::gw::cuda {

/// States in device memory, [count][n].
template <typename T>
struct DeviceStates {
  T* data;
  std::int64_t count, n;
};

/// Computes product(i, j) = ⟨a_i|b_j⟩, column-major [a.count × b.count].
template <typename T>
void overlaps(const CudaContext& context, DeviceStates<const T> a, DeviceStates<const T> b,
              T* product);

/// Computes result_j = alpha Σ_i states_i c(i, j) + beta result_j, with c column-major
/// [states.count × result.count].
template <typename T>
struct Combination {
  DeviceStates<const T> states;
  const T* c;
  double alpha = 1.0, beta = 0.0;
};
template <typename T>
void combine(const CudaContext& context, const Combination<T>& from, DeviceStates<T> result);

/// Makes the states orthonormal, and orthogonal to the orthonormal states `fixed`, by repeated
/// Cholesky factorisation of their overlaps, as orthonormalise() of block_algebra.hpp.
/// @throws NotConverged if the states stay linearly dependent
template <typename T>
void orthonormalise(const CudaContext& context, DeviceStates<const T> fixed, DeviceStates<T> x);

/// Returns ‖hx_i − E_i x_i‖ of every state. @param energy_ry  E, [x.count]
template <typename T>
std::vector<double> residuals(const CudaContext& context, const std::vector<double>& energy_ry,
                              DeviceStates<const T> x, DeviceStates<const T> hx);

}  // namespace quasi::gw::cuda
