#pragma once

#include <vector>

#include "workers/gw/solver/self_energy/sigma.hpp"

namespace quasi::gw {

/// Estimates by how much Σ of every outer state would change under the other rule of ZoneSum, by
/// the diagonal of W in static COHSEX (docs/theory/gw.md 5.1):
///
///   ΔΣ_l = Σ_qG {½ [ΔW_G(q) − Δv̄_G(q)] − Σ_{n occ} |M_ln(q; G)|² ΔW_G(q)}/ΩN_k,
///   W_G(q) = ε⁻¹_GG(q) v̄(q + G)
///
/// Bands of CH are summed by closure. With sub-sampling no other rule is as good. The estimate is
/// then that of the error of the sum itself (docs/theory/gw.md 5.2):
///
///   ΔΣ_l = −w₂ Σ_n occ D_ln/ΩN_k,
///   D_ln = ⟨|M_ln(q₁; 0)|²/q₁²⟩ − ⟨1/q₁²⟩ |M_ln(0; 0)|²
///
/// with the mean over the neighbours q₁ of q = 0 along the axes of the grid, and the weight w₂
/// of p² W_00(p). Rules agree where the interaction is cut to a wire, a sphere
/// or a box, or where its averages are stored.
/// @return means over multiplets in the order of quasiparticles(), eV; empty: there is no other
/// rule
std::vector<double> zone_sum_change_ev(const MeanField& field,
                                       const std::vector<DielectricMatrix>& epsilon,
                                       const SigmaOptions& options,
                                       const CoulombInteraction& coulomb, GwKernels& kernels);

/// Calculates by how much Σ of every outer state would change with every second point of the
/// sub-sampling left out. In static COHSEX only −Σ_occ |M_ln|² ΔW_00 + ½ ΔW_00 at q → 0
/// differs, where M_ln = δ_ln (docs/theory/gw.md 5.2):
///
///   ΔΣ_l = (½ − f_l) ΔW_00/(ΩN_k)
///
/// @return in the order of quasiparticles(), eV; empty without sub-sampling
std::vector<double> subsampling_change_ev(const MeanField& field,
                                          const std::vector<DielectricMatrix>& epsilon,
                                          const SigmaOptions& options,
                                          const CoulombInteraction& coulomb);

}  // namespace quasi::gw
