#pragma once

#include <vector>

#include "workers/backend/unset_vector.hpp"
#include "workers/backend/view.hpp"
#include "workers/gw/model/mean_field.hpp"
#include "workers/gw/physics/g_sphere.hpp"

namespace quasi::gw {

/// Completes χ_G'G = χ*_GG' from the triangle G ≤ G' that PartialChi holds.
void fill_lower_triangle(View<Cplx, 2> matrix);

/// True if the group holds the identity alone, so that a sum over it changes nothing.
/// @param group  indices into `operations`
bool is_identity_alone(const std::vector<SymmetryOperation>& operations,
                       const std::vector<int>& group);

/// Calculates (1/|G|) Σ_S S·χ (docs/theory/gw.md 2): it adds to the sum over a wedge the
/// contributions of the rest of each star, or makes a matrix symmetric. For f = S q + g₀,
///
///   (Sχ)_GG' = e^{−i(G+g₀)τ} χ_G₁G₁' e^{+i(G'+g₀)τ},  G₁ = S⁻¹(G+g₀)
/// @throws InvalidInput if the sphere is not closed under the group
UnsetVector<Cplx> summed_over_group(UnsetVector<Cplx> chi, const GSphere& sphere,
                                    const std::vector<SymmetryOperation>& operations,
                                    const std::vector<int>& group, bool at_gamma);

}  // namespace quasi::gw
