#pragma once

#include <functional>
#include <vector>

#include "workers/thermal/model/three_phonon_options.hpp"
#include "workers/thermal/solver/transport/conductivity_run.hpp"

namespace quasi::thermal {

/// Factor by which diffuse walls reduce a mode's share in a cylindrical wire: the mean over the
/// cross section of 1 − e^{−s/Λ}, s the way to the wall across the axis,
///
///   f = (2Λ/πR²) ∫_0^R [2√(R²−x²)/Λ − 1 + e^{−2√(R²−x²)/Λ}] dx,   Λ = v_ρ τ.
///
/// 1 for Λ → 0; 8R/(3πΛ) for Λ → ∞ (Casimir).
double diffuse_wire_reduction(double path_nm, double radius_nm);

/// κ along the axis of wires, in W/m/K.
struct WireConductivity {
  std::vector<Vec3> axis;              ///< [n_axes] unit vectors
  std::vector<double> radius_nm;       ///< [n_radii]
  std::vector<double> kappa_w_per_mk;  ///< [n_axes][n_radii]
};

/// Axes and radii of the wires of transport.options.
WireConductivity wires_of(const Transport& transport);

/// Computes κ of the wires in relaxation-time approximation. The factor f of its own relaxation
/// time reduces each mode's F along the axis. Each member of a star is treated by itself, because
/// a wire has less symmetry than its crystal.
/// @param rate_per_ps  [n_rows] total rates without boundaries
WireConductivity wire_conductivity(const Transport& transport, double temperature_k,
                                   const std::vector<double>& rate_per_ps);

/// Scattering of the phonons of a wire, beside isotopes and walls.
struct WireScattering {
  ThreePhononOptions three_phonon;
  std::vector<double> relaxation_per_ps;  ///< [nT][n_rows] four phonons in relaxation-time
                                          ///< approximation; empty: none
  /// Makes the four-phonon scattering that is iterated instead of these rates, with the rows of the
  /// symmetry of a wire; null: none.
  std::function<FurtherScattering(const Symmetry&)> iterated_along;
};

/// Solves the BTE of wires: F = f τ (ωv + in-scattering of F), a diagonal of w/f. The symmetry of
/// the wire folds the mesh, so the processes of its irreducible points are listed for every axis.
/// Rates are those of the run. It needs the symmetric operator.
/// @param bulk  of the crystal without walls
/// @return [nT]
/// @throws NotConverged as solve_bte.
std::vector<WireConductivity> converged_wires(const Transport& bulk,
                                              const SparseForceConstants& third_order,
                                              const ConductivityRun& run,
                                              const WireScattering& scattering,
                                              const Device& device, Progress& progress);

}  // namespace quasi::thermal
