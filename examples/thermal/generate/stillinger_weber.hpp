#pragma once

#include <vector>

#include "examples/thermal/generate/crystal_model.hpp"

namespace quasi::model {

/// The potential of Stillinger and Weber for silicon [stillinger1985], with the
/// parameters of that paper.
struct StillingerWeber {
  double epsilon_ev = 2.1678;
  double sigma_angstrom = 2.0951;
  double A = 7.049556277;
  double B = 0.6022245584;
  double p = 4.0;
  double q = 0.0;
  double a = 1.80;  ///< cutoff, in units of σ
  double lambda = 21.0;
  double gamma = 1.20;

  /// The distance of lowest pair energy. In any structure with bonds of this length at the
  /// tetrahedral angle, every force and the stress vanish. Each three-body term is then at its own
  /// minimum, zero, and second neighbours lie outside the cutoff.
  double bond_length_angstrom() const;
  /// Two-body term φ₂ of the distance r, eV.
  Nilpotent pair_energy_ev(const Nilpotent& r_angstrom) const;
  /// The pair and three-body terms of one cell of `structure`.
  std::vector<EnergyTerm> terms(const Structure& structure) const;
};

/// Returns the potential with other units of length and energy: bonds of the given length and
/// wells of the given depth. All angles and ratios are those of silicon, so that phonon frequencies
/// change by √(ε/M)/σ.
StillingerWeber scaled_potential(double bond_length_angstrom, double epsilon_ev);

/// Diamond, two silicon atoms.
Structure diamond(const StillingerWeber& potential);
/// Diamond, two germanium atoms.
Structure germanium(const StillingerWeber& potential);
/// Zinc blende with gallium at the origin and arsenic at a quarter of the diagonal. The ions carry
/// no charge, so that its longitudinal and transverse optical phonons at Γ have one frequency.
Structure gallium_arsenide(const StillingerWeber& potential);
/// Ideal wurtzite with four atoms: the same bonds in hexagonal stacking. It has two masses (silicon
/// and germanium) so that the two sublattices differ. It is a model without a real counterpart.
Structure wurtzite(const StillingerWeber& potential);
/// Hexagonal polytype of silicon with 4·`half` atoms: `half` bilayers are stacked in one sense and
/// `half` in the other. 2, 3 and 6 give the polytypes 4H, 6H and 12H with 8, 12 and 24 atoms. Bonds
/// and angles are those of diamond.
Structure polytype(const StillingerWeber& potential, int half);

}  // namespace quasi::model
