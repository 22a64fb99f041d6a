#pragma once

#include <cstdint>
#include <vector>

#include "workers/thermal/model/lattice_model.hpp"
#include "workers/thermal/solver/transport/conductivity.hpp"

namespace quasi::thermal {

/// Fills modes.subspace_pairs and modes.velocity_variance_km2_s2 with the elements of the velocity
/// operator inside degenerate subspaces, beyond the mean velocities of the modes
/// (docs/theory/thermal.md 8).
void set_subspace_velocities(const LatticeModel& model, const HarmonicOptions& options,
                             Modes& modes);

/// Returns Σ_ss' Re v_ss' ⊗ v_s's over the degenerate subspace of every row, [n_rows] in km²/s².
/// All modes of a subspace have the same tensor (docs/theory/thermal.md 8).
/// @return  empty if the modes hold no variances of the velocity
std::vector<Mat3> velocity_matrix_trace(const Symmetry& symmetry, const Modes& modes);

/// κ_Δ of every row, symmetrised over the group, [n_rows] in W/m/K: the heat that branches of one
/// degenerate subspace carry beyond its mean velocity (docs/theory/thermal.md 8). The modes
/// of a subspace share it equally. It is zero where the modes hold no pairs.
/// @param rate_per_ps  [n_rows]
std::vector<Mat3> subspace_conductivity(const Transport& transport, double temperature_k,
                                        const std::vector<double>& rate_per_ps);

/// Returns ½(ω+ω')[ω n(n+1) + ω' n'(n'+1)](w+w')/[4(ω−ω')²+(w+w')²] of a pair, in rad²/ps; zero if
/// one of its modes takes no part.
double subspace_pair_weight(const Transport& transport, const SubspacePair& pair,
                            double temperature_k, double rate_per_ps, double other_rate_per_ps);

}  // namespace quasi::thermal
