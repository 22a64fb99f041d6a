#pragma once

#include <vector>

#include "workers/gw/kernels/gw_kernels.hpp"

namespace quasi::gw {

/// GwKernels::sigma_diagonal_imaginary; pairs (l, n) in parallel, added in order.
/// @param products  M, [n_left][n_right][n_g]
void add_imaginary_poles_cpu(const std::vector<ImaginaryPole>& poles, const PoleRules& rules,
                             View<const Cplx, 3> products, View<const double, 3> x_ry,
                             View<const double, 1> occupation, double weight, View<Cplx, 2> total,
                             View<Cplx, 2> sx, View<Cplx, 1> slope);

/// Sums over the poles of one pair and energy; what both devices add to Σ.
struct ImaginaryPoleSums {
  Cplx ch, sx, slope;  ///< sx with its occupation
};
void add_imaginary_pole_sums(const std::vector<ImaginaryPoleSums>& sums, std::int64_t n_left,
                             std::int64_t n_right, double weight, View<Cplx, 2> total,
                             View<Cplx, 2> sx, View<Cplx, 1> slope);

}  // namespace quasi::gw
