#pragma once

#include <cstdint>
#include <vector>

#include "workers/gw/solver/screening/epsilon.hpp"

namespace quasi::gw {

/// Eigenvectors of χ̃(0) that are kept, as columns [n][n_basis]; with q → 0 the first `n_heads`
/// plane waves, which stand for G = 0, are kept exactly.
std::vector<Cplx> subspace_of(const DielectricMatrix& m, const std::vector<Cplx>& chi,
                              const SubspaceOptions& options, std::size_t n_heads,
                              GwKernels& kernels);

/// The frequencies other than 0 of a matrix that holds ε⁻¹(0).
/// @param chi_static  χ(0), [n][n];  projected  χ̃_BB'(ω), [n_frequencies − 1][n_b][n_b]
void add_subspace_frequencies(DielectricMatrix& m, const std::vector<Cplx>& chi_static,
                              const std::vector<Cplx>& basis, const std::vector<Cplx>& projected,
                              const EpsilonOptions& options, GwKernels& kernels);

/// ε⁻¹ of one frequency between the plane waves of the subspace, G = 0 as often as it stands there;
/// [reduced.n][reduced.n].
/// @param coulomb  v(q+G), [reduced.n]
UnsetVector<Cplx> expanded_inverse(const ReducedFrequencies& reduced, std::size_t frequency,
                                   const std::vector<double>& coulomb);

/// v once for each plane wave that stands for G = 0.
std::vector<double> widened_coulomb(std::vector<double> coulomb, std::int64_t n_heads);

}  // namespace quasi::gw
