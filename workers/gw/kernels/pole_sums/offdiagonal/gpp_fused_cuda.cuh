#pragma once

#include <cstdint>

#include "workers/gw/kernels/dense/products_cuda.cuh"
#include "workers/gw/kernels/pole_sums/diagonal/gpp_diagonal_cuda.cuh"
#include "workers/gw/kernels/pole_sums/offdiagonal/separable_pole.hpp"

namespace quasi::gw::cuda {

/// The factor of A_GG' in an element of P.
enum class PoleFactor {
  kOccupied,  ///< pole_factor_occupied at E − E_n
  kEmpty,     ///< pole_factor_empty
  kStored,    ///< terms that do not depend on (n, E), made by store_separable_terms
};

/// T[n][l][e][G'] = Σ_G M_ln(G) P^e_GG' for the energies of one band, in one kernel: elements of P
/// are made in shared memory where the tensor cores read them, and never exist elsewhere; or, the
/// same for several bands, are fetched there. A folded model gives M L' of folded_weight(): half
/// the steps. See docs/theory/gw.md 7 for the equations.
struct FusedProduct {
  PoleModelOnDevice model;
  PoleRules rules;
  const double2* packed = nullptr;  ///< M_ln of each band, by pack_for_fused_product
  std::int64_t n_left = 0;
  std::int64_t n_bands = 1;
  const double* energies_ry = nullptr;  ///< on the device, [n_energies]; not read of stored terms
  std::int64_t n_energies = 0;          ///< or terms
  double band_ry = 0.0;
  PoleFactor factor = PoleFactor::kEmpty;
  const double2* stored = nullptr;
  double2* t = nullptr;  ///< [n_bands][n_left][n_energies][n_g]
};

/// True where the fused kernel exists (compute capability 9) and is the faster one: it works at
/// whole tiles of rows, and what it saves is worth about forty rows of product.
bool fused_product_pays(std::int64_t n_left);

/// Number of values of M of one band in the order in which the kernel reads them, and the packing.
std::int64_t packed_size(std::int64_t n_left, std::int64_t n_g);
void pack_for_fused_product(DeviceMatrix m, std::int64_t n_left, std::int64_t n_g, double2* packed,
                            cudaStream_t stream);

/// Terms [first, n_terms) of a separable sum, four a group.
struct StoredTerms {
  SeparableFamily family;
  const double* node = nullptr;  ///< on the device, [n_terms]
  double constant = 0.0;
  std::int64_t first = 0, n_terms = 0;
};
inline constexpr std::int64_t kTermsPerGroup = 4;
/// Numbers of one group.
std::int64_t stored_size(std::int64_t n_g);
void store_separable_terms(const PoleModelOnDevice& model, const StoredTerms& terms,
                           std::int64_t n_groups, double2* stored, cudaStream_t stream);

void launch_fused_product(const FusedProduct& product, cudaStream_t stream);

}  // namespace quasi::gw::cuda
