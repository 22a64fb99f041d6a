#pragma once

#include <span>
#include <vector>

#include "workers/gw/solver/mean_field/eigensolver/operator_states.hpp"
#include "workers/gw/solver/mean_field/pseudobands.hpp"
#include "workers/gw/solver/perturbation/sigma_derivative.hpp"

namespace quasi::gw {

/// Holds the states of filtered pseudobands at one k-point for their first order. A state has n
/// coefficients, one of each plane wave and component.
struct FilteredStates {
  const PseudobandPlan& plan;   ///< plan with polynomials of H (PseudobandPlan::filter)
  const Vec3& k;                ///< reduced
  const std::vector<IVec3>& g;  ///< plane waves at k
  View<const Cplx, 2> kept;     ///< protected states, [plan.kept][n]
  View<const Cplx, 2> factors;  ///< random vectors θ_r, [vectors][n]
};

/// Returns random vectors of filtered pseudobands at the irreducible k-points, N_ξ^−½ θ_r as
/// the bands of a list of states, from which filtered_pseudobands() makes its windows.
/// @param field  lowest states of field.hamiltonian
Wavefunctions vectors_of_filter(const MeanField& field, const PseudobandPlan& plan,
                                PseudobandUse use);

/// Calculates the first order of the window vectors ξ_k = p_k(H)(1 − P)θ in local potentials
/// and spin–orbit terms by the differentiated recursion of Chebyshev (docs/theory/gw.md 14.12):
///
///   ∂T_{l+1} = 2H̃ ∂T_l + (2/w) ∂V T_l − ∂T_{l−1},  ∂T_0 = −(∂P) θ
///
/// H̃ is H shifted and scaled by 1/w, so that its spectrum lies in [−1, 1]. P projects on the
/// protected states. The windows p_k are fixed functions of the energy. ∂P follows from the first
/// orders of the protected states outside of P. All perturbations share the recursion of T_l.
/// @param h              H at the same k-point
/// @param perturbations  perturbations that are_local() accepts
/// @param responses      first orders ψ'_n of all protected states by
///                       SternheimerEquation::solve(), 1/Bohr, [n_p][kept][n]
/// @return 1/Bohr, bands in the order of PseudobandPlan::place_of(), [n_p][bands − kept][n]
std::vector<Cplx> pseudoband_response(const FilteredStates& states, LoadedHamiltonian& h,
                                      std::span<const Perturbation> perturbations,
                                      const std::vector<Cplx>& responses);

}  // namespace quasi::gw
