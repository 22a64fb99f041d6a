#pragma once

#include <vector>

#include "workers/gw/kernels/pole_sums/pole_sum_kernels.hpp"

namespace quasi::gw {

/// Sums to which LoadedImaginaryPoles::add_diagonal adds.
struct ImaginarySums {
  DiagonalSums values;
  View<Cplx, 1> slope;  ///< no data: not wanted
};

/// Adds the terms of imaginary poles on the CPU (LoadedImaginaryPoles::add_diagonal). Threads
/// calculate the pairs (l, n), which are added in order.
/// See docs/theory/gw.md 6.2 for the equations.
/// @param products  M, [n_left][n_right][n_g]
void add_imaginary_poles_cpu(const std::vector<ImaginaryPole>& poles, const PoleRules& rules,
                             View<const Cplx, 3> products, const DiagonalTerms& terms,
                             const ImaginarySums& sums);

/// Sums over the poles at one pair (l, n) and energy, before weights.
struct ImaginaryPoleSums {
  Cplx ch, sx, slope;  ///< sx contains its occupation
};
/// Adds the sums of all pairs to Σ in order. [n_left][n_right][n_energies]
void add_imaginary_pole_sums(const std::vector<ImaginaryPoleSums>& of_pairs,
                             const DiagonalTerms& terms, const ImaginarySums& sums);

}  // namespace quasi::gw
