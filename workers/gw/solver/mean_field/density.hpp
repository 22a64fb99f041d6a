#pragma once

#include <vector>

#include "workers/gw/kernels/gw_kernels.hpp"
#include "workers/gw/solver/mean_field/problem.hpp"

namespace quasi::gw {

/// Returns ρ(G) = (f/N_k) Σ_kv ⟨v| e^{−iGr} |v⟩ over the full zone, electrons, [spin][n_g],
/// with the electrons f of a band: two, or one of spinors and of spin-polarised states.
/// @param n_occupied  bands of each spin
std::vector<std::vector<Cplx>> summed_density(const Wavefunctions& waves, const BrillouinZone& zone,
                                              const std::vector<int>& n_occupied,
                                              const std::vector<IVec3>& g, GwKernels& kernels);

/// Returns V_H(G) of a change of density, Ry: 8π/|G|² Σ_s Δρ_s(G)/Ω, 0 at G = 0 (docs/theory/gw.md
/// 8).
PlaneWaveField hartree_potential(const MeanFieldHeader& header,
                                 const std::vector<std::vector<Cplx>>& change);

}  // namespace quasi::gw
