#pragma once

#include "workers/gw/kernels/gpp_diagonal_cuda.cuh"

namespace quasi::gw::cuda {

/// T[l][e][G'] = Σ_G M_ln(G) A_GG' F_n(E_e − E_n, ω̃_GG') for the energies of one band, in one kernel:
/// elements of P are made in shared memory where the tensor cores read them, and never exist elsewhere.
/// A folded model gives M L' of folded_weight(): half the steps.
struct FusedProduct {
  PoleModelOnDevice model;
  PoleRules rules;
  const double2* packed = nullptr;  ///< M_ln of one band, by pack_for_fused_product
  std::int64_t n_left = 0;
  const double* energies_ry = nullptr;  ///< on the device, [n_energies]
  std::int64_t n_energies = 0;
  double band_ry = 0.0;
  bool occupied = false;
  double2* t = nullptr;  ///< [n_left][n_energies][n_g]
};

/// True where the fused kernel exists (compute capability 9) and is the faster one: it works at whole tiles of rows, and what it saves is
/// worth about forty rows of product.
bool fused_product_pays(std::int64_t n_left);

/// Numbers of M of one band as the kernel reads it, and the packing: row l of M lies `row_stride` numbers after row l − 1.
std::int64_t packed_size(std::int64_t n_left, std::int64_t n_g);
void pack_for_fused_product(const double2* m, std::int64_t row_stride, std::int64_t n_left, std::int64_t n_g, double2* packed, cudaStream_t stream);

void launch_fused_product(const FusedProduct& product, cudaStream_t stream);

}  // namespace quasi::gw::cuda
