#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include "workers/gw/kernels/pole_sums/diagonal/gpp_diagonal_cuda.cuh"

namespace quasi::gw::cuda {

/// Describes one band n of a set of pair products and the pole factor f that acts on it. The factor
/// is F at x_a = E − E_n, or the divided difference of F at x_a and x_b
/// (physics/pole_difference.hpp).
struct PoleRow {
  std::int64_t band = 0;
  double x_a_ry = 0.0, occupation_a = 0.0;
  double x_b_ry = 0.0, occupation_b = 0.0;
  double a_minus_b_ry = 0.0;
  bool difference = false;
};

/// Describes the products of pole matrices with pair products,
///
///   y[row][m][G] = Σ_G' A_GG' f(ω̃_GG') M*_mn(G'),
///
/// where n and f belong to the row. With `adjoint`, A*_G'G and ω̃_G'G stand in place of A_GG' and
/// ω̃_GG'. Elements of the pole matrix exist in registers alone (docs/theory/gw.md 14.2).
struct PoleRowsProduct {
  PoleModelOnDevice model;
  PoleRules rules;
  bool adjoint = false;
  ProductsOnDevice products;      ///< M, [m][n][n_g]
  const PoleRow* rows = nullptr;  ///< on the device, [n_rows]
  std::int64_t n_rows = 0;
  double2* y = nullptr;  ///< [n_rows][m][n_g]
};
/// Starts the kernel that computes y on a stream of the current device, and does not wait for it.
void launch_pole_rows(const PoleRowsProduct& product, cudaStream_t stream);

}  // namespace quasi::gw::cuda
