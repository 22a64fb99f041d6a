#pragma once

#include <vector>

#include "workers/gw/solver/self_energy/sigma.hpp"

namespace quasi::gw {

/// Estimates by how much Σ of every outer state would change under the other rule of ZoneSum, by
/// the diagonal of W in static COHSEX (docs/theory/gw.md 5.1):
///
///   ΔΣ_l = Σ_q Σ_G {−Σ_{n occ} |M_ln(q; G)|² ΔW_G(q) + ½ [ΔW_G(q) − Δv̄_G(q)]}/ΩN_k,
///   W_G(q) = ε⁻¹_GG(q) v̄(q + G)
///
/// Bands of CH are summed by closure. Rules agree where the interaction is cut to a wire, a sphere
/// or a box, or where its averages are stored.
/// @return means over multiplets in the order of quasiparticles(), eV; empty: there is no other
/// rule
std::vector<double> zone_sum_change_ev(const MeanField& field,
                                       const std::vector<DielectricMatrix>& epsilon,
                                       const SigmaOptions& options,
                                       const CoulombInteraction& coulomb, GwKernels& kernels);

}  // namespace quasi::gw
