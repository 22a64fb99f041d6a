#pragma once

#include <vector>

#include "workers/gw/kernels/gw_kernels.hpp"
#include "workers/gw/kernels/pole_sums/first_order/first_order_cpu.hpp"

// This file has the first order of Σ with W as matrices instead of poles (docs/theory/gw.md 14.8).
namespace quasi::gw {

/// Holds the matrix W between the pair products of a first order, and the factor k of every pair of
/// bands (n', n). Either `matrix` or `diagonal` has data.
struct FirstOrderForm {
  View<const Cplx, 2> matrix;    ///< W_GG', [n_g][n_g]
  View<const Cplx, 1> diagonal;  ///< W_GG of a diagonal W, [n_g]
  View<const double, 3> factor;  ///< k, [n_energies][n_bra][part.size()]
};

/// Adds the terms of all n' and of the kets n of the part, on the device of the products:
///
///   sum[p][e][l][m] += w Σ_n'n k_e,n'n V_n'n Σ_GG' M_ln'(G) W_GG' M*_mn(G')
///
/// @param sum  [n_p][n_energies][n_l][n_m]
/// @throws BackendAbsent for a CUDA device in a build without CUDA
void add_first_order_form(const Device& device, const FirstOrderProducts& products,
                          const FirstOrderPairs& pairs, const FirstOrderForm& form,
                          View<Cplx, 4> sum);
/// Adds the terms of add_first_order_form() from products in host memory.
void add_first_order_form_cpu(const FirstOrderArrays& products, const FirstOrderPairs& pairs,
                              const FirstOrderForm& form, View<Cplx, 4> sum);
/// Adds the terms of add_first_order_form() from products in device memory.
/// @throws BackendAbsent in a build without CUDA
void add_first_order_form_cuda(const FirstOrderProducts& products, const FirstOrderPairs& pairs,
                               const FirstOrderForm& form, View<Cplx, 4> sum);

/// Returns the weight w of the q-point times k for all pairs, [n_energies][n_bra][part.size()].
std::vector<double> weighted_factors(const FirstOrderForm& form, const FirstOrderPairs& pairs);
/// Returns for each energy 1 if any factor differs from 0, and 0 otherwise, [n_energies].
/// @param factor  [n_energies][n_bra][part.size()]
std::vector<char> used_energies(const std::vector<double>& factor, std::int64_t n_energies);

}  // namespace quasi::gw
