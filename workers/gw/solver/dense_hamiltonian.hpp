#pragma once

#include "workers/backend/progress.hpp"
#include "workers/gw/input/mean_field.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"

namespace quasi::gw {

/// The mean-field Hamiltonian in plane waves at one k (spec 9), Ry, [n_pw][n_pw]:
///
///   H_GG' = |k+G|² δ + V_scf(G−G') + Σ_a Σ_pq β_ap(k+G) D^a_pq β*_aq(k+G')
///
/// with V_scf zero outside the density sphere. `g` may be in any order; projectors are looked up by G.
/// @throws InvalidInput if the projector file lacks the k-point or a plane wave of it.
std::vector<Cplx> dense_hamiltonian(const Wavefunctions& waves, int k_index, int spin, const PlaneWaveField& potential,
                                    const Projectors& projectors);

/// Replaces all states by the n_bands lowest eigenstates of H, in a gauge that depends on H alone.
/// Occupations stay with the band numbers. Matrix elements of V_xc must be made anew from VXC.
/// @throws InvalidInput if a k-point has fewer plane waves, or if the eigenvalues differ from those of
///         the file by more than 1e-4 Ry: the potential then belongs to another calculation.
void replace_by_dense_states(Wavefunctions& waves, int n_bands, const PlaneWaveField& potential, const Projectors& projectors,
                             GwKernels& kernels, Progress& progress);

}  // namespace quasi::gw
