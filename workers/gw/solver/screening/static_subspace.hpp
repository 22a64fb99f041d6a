#pragma once

#include <cstdint>
#include <vector>

#include "workers/gw/solver/screening/epsilon.hpp"

namespace quasi::gw {

/// Calculates the basis of the static subspace (docs/theory/gw.md 4.2): the leading eigenvectors of
/// χ̃(0) as columns [n][n_basis]. With q → 0 it holds the first `n_heads` plane waves, which stand
/// for G = 0, exactly.
std::vector<Cplx> subspace_of(const DielectricMatrix& m, const std::vector<Cplx>& chi,
                              const SubspaceOptions& options, std::size_t n_heads,
                              GwKernels& kernels);

/// Adds the frequencies other than 0 to a matrix that holds ε⁻¹(0).
/// @param chi_static  χ(0), [n][n];  projected  χ̃_BB'(ω), [n_frequencies − 1][n_b][n_b]
void add_subspace_frequencies(DielectricMatrix& m, const std::vector<Cplx>& chi_static,
                              const std::vector<Cplx>& basis, const std::vector<Cplx>& projected,
                              const EpsilonOptions& options, GwKernels& kernels);

/// Expands ε⁻¹ of one frequency from the subspace into [reduced.n][reduced.n]. G = 0 occurs as
/// often as in the subspace.
/// @param coulomb  v(q+G), [reduced.n]
UnsetVector<Cplx> expanded_inverse(const ReducedFrequencies& reduced, std::size_t frequency,
                                   const std::vector<double>& coulomb);

/// Repeats v(q) for each plane wave that stands for G = 0.
std::vector<double> widened_coulomb(std::vector<double> coulomb, std::int64_t n_heads);

}  // namespace quasi::gw
