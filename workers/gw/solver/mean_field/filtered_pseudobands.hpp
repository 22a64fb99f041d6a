#pragma once

#include "workers/gw/kernels/hamiltonian/hamiltonian_kernels.hpp"
#include "workers/gw/solver/mean_field/pseudobands.hpp"

namespace quasi::gw {

/// Plans pseudobands of all states of H above the protected ones, by polynomials of H
/// (docs/theory/gw.md 9.5). States below midgap + protected_ry are protected in whole multiplets.
/// @param field  lowest states of field.hamiltonian, which reach that energy at every k
/// @throws InvalidInput if they do not, or if the windows do not add up to 1
PseudobandPlan plan_filtered_pseudobands(const MeanField& field, const PseudobandOptions& options,
                                         bool top_is_whole);

/// Makes the states of such a plan: the protected bands, then for each window k and vector r
///
///   ξ_kr = N_ξ^−½ p_k(H) (1 − P) θ_r,   E[θ_r θ_r†] = 1
///
/// with the projector P on the protected bands. θ has one factor for each plane wave and component
/// of a state: ±1 where H is real, else a phase.
/// @param field  as the plan's; its waves are those of the plan
/// @throws NotConverged if the spectrum of H exceeds its bound, or a state below the windows is
/// not among the protected ones
Wavefunctions filtered_pseudobands(const MeanField& field, const PseudobandPlan& plan,
                                   PseudobandUse use, HamiltonianKernels& kernels);

/// Makes the windows of given random vectors at one k-point.
/// @param kept     protected states of h, [plan.kept][n_pw]
/// @param factors  vectors N_ξ^−½ θ_r of vectors_of_filter(), [vectors][n_pw]
/// @return windows in the order of PseudobandPlan::place_of(), [bands − kept][n_pw]
/// @throws NotConverged as filtered_pseudobands() does
std::vector<Cplx> windows_of_vectors(const PseudobandPlan& plan, View<const Cplx, 2> kept,
                                     View<const Cplx, 2> factors, LoadedHamiltonian& h);

}  // namespace quasi::gw
