#pragma once

#include <vector>

#include "workers/gw/solver/mean_field/pseudobands.hpp"
#include "workers/gw/solver/perturbation/sigma_derivative.hpp"

namespace quasi::gw {

/// Holds the states of filtered pseudobands at one k-point for their first order.
struct FilteredStates {
  const PseudobandPlan& plan;   ///< with polynomials of H (PseudobandPlan::filter)
  const std::vector<IVec3>& g;  ///< plane waves at k
  View<const Cplx, 2> kept;     ///< protected states, [plan.kept][n_pw]
  View<const Cplx, 2> factors;  ///< random vectors θ_r, [vectors][n_pw]
};

/// Returns random vectors of filtered pseudobands at the irreducible k-points, N_ξ^−½ θ_r as
/// the bands of a list of states, from which filtered_pseudobands() makes its windows.
/// @param field  lowest states of field.hamiltonian
Wavefunctions vectors_of_filter(const MeanField& field, const PseudobandPlan& plan,
                                PseudobandUse use);

/// Calculates the first order of the window vectors ξ_k = p_k(H)(1 − P)θ in a local potential
/// by the differentiated recursion of Chebyshev (docs/theory/gw.md 14.12):
///
///   ∂T_{l+1} = 2H̃ ∂T_l + (2/w) ∂V T_l − ∂T_{l−1},  ∂T_0 = −(∂P) θ
///
/// The windows are fixed functions of the energy. ∂P follows from the first orders of the
/// protected states outside of P.
/// @param h  H at the same k-point
/// @param potential  ∂V(G), Ry/Bohr
/// @param response  ψ'_n of all protected states in it, SternheimerEquation::solve(); [kept][n_pw]
/// @return 1/Bohr, in the order of PseudobandPlan::place_of(), [bands − kept][n_pw]
std::vector<Cplx> pseudoband_response(const FilteredStates& states, LoadedHamiltonian& h,
                                      const PotentialElements& potential,
                                      const std::vector<Cplx>& response);

/// Calculates the first order of Σ with filtered pseudobands, [perturbation][k], as
/// sigma_derivatives() does. It is the derivative of Σ with the same random vectors.
/// @param field  states of filtered_pseudobands() for Σ, and field.hamiltonian
/// @param wanted  with a response, and perturbations of p = 0
/// @throws InvalidInput as sigma_derivatives() does, or if the plan has no polynomials of H
std::vector<std::vector<SigmaDerivativeAtK>> pseudoband_derivatives(
    const MeanField& field, const PseudobandPlan& plan,
    const std::vector<DielectricMatrix>& epsilon, const SigmaOptions& options,
    const DerivativeRequest& wanted, const StepContext& context);

}  // namespace quasi::gw
