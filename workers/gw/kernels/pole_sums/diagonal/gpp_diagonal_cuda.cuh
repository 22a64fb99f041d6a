#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

#include "workers/gw/kernels/pole_sums/diagonal/pole_groups.hpp"
#include "workers/gw/kernels/pole_sums/pole_sum_kernels.hpp"

namespace quasi::gw::cuda {

/// A plasmon-pole model in device memory, as PlasmonPoleView has it. A packed model is Hermitian
/// and has real A; its arrays hold the triangle G' ≤ G alone, row by row, which takes a third of
/// the memory. Only the kernels of changes read packed models. See docs/theory/gw.md 6.2 for the
/// equations.
struct PoleModelOnDevice {
  const double2* strength = nullptr;      ///< A, [rows][stride]; null in a packed model
  const double* real_strength = nullptr;  ///< A of a packed model, else null
  const double* pole_ry = nullptr;        ///< ω̃, [rows][stride], or packed
  std::int64_t n_g = 0;
  /// The model is Hermitian: sums run over the lower triangle, off-diagonal doubled, and are real.
  bool folded = false;

  /// Rows that the arrays hold. A packed model holds all of its rows.
  ElementRows rows;
  std::int64_t stride = 0;  ///< columns of each row that the arrays hold

  /// Returns the position of an element. @param h  at most g if the model is packed
  __device__ std::int64_t at(std::int64_t g, std::int64_t h) const {
    return real_strength != nullptr ? g * (g + 1) / 2 + h : (g - rows.begin) * stride + h;
  }
  /// Returns A of the element at a position.
  __device__ double2 strength_at(std::int64_t position) const {
    return real_strength != nullptr ? double2{real_strength[position], 0.0} : strength[position];
  }
};

/// A block of pair products in device memory.
struct ProductsOnDevice {
  const double2* products;  ///< M, [n_left][n_right][n_g]
  std::int64_t n_left, n_right;
};

/// Diagonal plasmon-pole sums of one group of energies.
struct GroupSums {
  std::vector<Cplx> total;  ///< [n_left][group.n_energies]
  std::vector<Cplx> sx;     ///< [n_left][group.n_energies]; zeros if no row asks for it
};

/// Each thread block owns a tile of (G, G') with B and τ in registers and passes all rows (l, n)
/// through it; M(G) and M(G') of a few rows at a time sit in shared memory, the next ones in
/// flight. Tile sums are added by a second kernel in fixed order: same bits every time.
///
/// FP64 instructions of an element, a smooth row and its K energies: 6 for Re[M B M*], K for D, 3
/// for the reciprocal, 2K − 1 for the powers and sums: 17 for K = 3, and K²/16 to finish the row. A
/// model that is not Hermitian takes K + 2 more for the imaginary part. A split row takes 6, then
/// 11 for each energy with the comparisons, and 3 for a slope.
GroupSums gpp_diagonal_cuda(const PoleModelOnDevice& model, const PoleRules& rules,
                            const PoleGroup& group, const ProductsOnDevice& products,
                            cudaStream_t stream);

}  // namespace quasi::gw::cuda
