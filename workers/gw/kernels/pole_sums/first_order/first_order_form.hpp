#pragma once

#include <vector>

#include "workers/gw/kernels/gw_kernels.hpp"
#include "workers/gw/kernels/pole_sums/first_order/first_order_cpu.hpp"

// First order of Σ with W as matrices instead of poles (docs/theory/gw.md 14.8).
namespace quasi::gw {

/// A matrix between the pair products of a first order, and the factors of the pairs of bands.
/// Either `matrix` or `diagonal` has data.
struct FirstOrderForm {
  View<const Cplx, 2> matrix;    ///< W_GG', [n_g][n_g]
  View<const Cplx, 1> diagonal;  ///< W_GG of a diagonal W, [n_g]
  View<const double, 3> factor;  ///< k, [n_energies][n_bra][part.size()]
};

/// Adds, on the device of the products,
///
///   sum[p][e][l][m] += w Σ_n'n k_e,n'n V_n'n Σ_GG' M_ln'(G) W_GG' M*_mn(G')
///
/// of all n' and the kets n of the part. @param sum  [n_p][n_energies][n_l][n_m]
void add_first_order_form(const Device& device, const FirstOrderProducts& products,
                          const FirstOrderPairs& pairs, const FirstOrderForm& form,
                          View<Cplx, 4> sum);
void add_first_order_form_cpu(const FirstOrderArrays& products, const FirstOrderPairs& pairs,
                              const FirstOrderForm& form, View<Cplx, 4> sum);
/// @throws BackendAbsent in a build without CUDA
void add_first_order_form_cuda(const FirstOrderProducts& products, const FirstOrderPairs& pairs,
                               const FirstOrderForm& form, View<Cplx, 4> sum);

/// Returns w k of all pairs, in the shape of the factors.
std::vector<double> weighted_factors(const FirstOrderForm& form, const FirstOrderPairs& pairs);
/// Tells of each energy whether any factor differs from 0. @param factor  [n_energies][…]
std::vector<char> used_energies(const std::vector<double>& factor, std::int64_t n_energies);

}  // namespace quasi::gw
