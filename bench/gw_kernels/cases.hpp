#pragma once

#include <cstdint>
#include <vector>

#include "workers/gw/kernels/gw_kernels.hpp"

/// Cases of the benchmark gw_kernels. Each prints one JSON line per measurement.
namespace quasi::gw {

struct CaseSizes {
  std::int64_t n_g, n_bands;                 ///< N_G; bands of the diagonal sum
  std::int64_t n_energies_off, n_bands_off;  ///< energies and bands of the off-diagonal sum
  std::int64_t n_left_chi, n_right_chi;      ///< occupied and empty bands of the polarizability
  std::int64_t n_right_fft;                  ///< right bands of the pair products
  int box;                                   ///< points of the FFT box along an axis
  int psi_limit, sphere_limit_squared;       ///< radius of the plane waves; squared radius of G
  std::vector<std::int64_t> n_sigma;         ///< outer states of the off-diagonal sum, case by case
  bool hermitian = false;                    ///< symmetry of the model of the off-diagonal sum
};

void time_diagonal(GwKernels& kernels, const CaseSizes& size);
/// @param separable  also times the separable methods and prints their error against the products
void time_offdiagonal(GwKernels& kernels, const CaseSizes& size, bool separable);
/// Times the ways in which the off-diagonal sum can form its products.
void time_products(GwKernels& kernels, const CaseSizes& size);
/// Times the full matrix between two sets of pair products, as first orders of Σ need it.
void time_two_sets(GwKernels& kernels, const CaseSizes& size);
/// Times the products of the polarizability with pair products in memory.
void time_chi(GwKernels& kernels, const CaseSizes& size);
/// Times the polarizability from wavefunctions, complex and real, with the transforms beside the
/// products and before them. No pair product is kept.
void time_chi_pairs(GwKernels& kernels, const CaseSizes& size);
void time_fft(GwKernels& kernels, const CaseSizes& size);
void time_inverse(GwKernels& kernels, const CaseSizes& size);

}  // namespace quasi::gw
