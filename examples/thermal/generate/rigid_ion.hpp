#pragma once

#include <vector>

#include "examples/thermal/generate/crystal_model.hpp"

namespace quasi::model {

/// Point ions ±Z on rock salt with a Born–Mayer repulsion B exp(-r/ρ) between nearest neighbours:
/// the model of Kellermann [kellermann1940] for NaCl. B follows from zero
/// pressure at the given lattice constant. Ions do not polarise: ε∞ = 1, Z* = ±Z, and
///   ω²_LO − ω²_TO = Z² e²/(ε0 V μ)   at q → 0 (V cell volume, μ reduced mass).
struct RigidIon {
  double charge_e = 1.0;
  double lattice_constant_angstrom = 5.64;
  double rho_angstrom = 0.321;

  /// e²/4πε0 in eV Å.
  static constexpr double kCoulomb_ev_angstrom = 14.3996454784255;

  double repulsion_ev() const;  ///< B
  Structure structure() const;

  /// Order 3 and 4: repulsion and Coulomb energy of first and second neighbours.
  std::vector<EnergyTerm> anharmonic_terms(const Structure& structure) const;

  /// Second order of a supercell deck, as a finite-displacement computation in the periodic
  /// supercell returns it: all periodic images are summed, and there is no macroscopic field.
  ForceConstants supercell_force_constants(const Structure& structure) const;

  /// Second order of an espresso deck without the reciprocal half of the Ewald sum with Λ =
  /// 2π/|a1|, i.e. the repulsion and Z Z' erfc(Λr)/r. The reader adds the other half.
  ForceConstants short_range_force_constants(const Structure& structure) const;
};

}  // namespace quasi::model
