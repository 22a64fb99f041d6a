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

/// Returns the potential of silicon with other units of length and energy. Angles and ratios of
/// lengths stay, so that phonon frequencies scale with √(ε/M)/σ. Here ε is the depth of the
/// pair energy, M the mass of an atom and σ the unit of length.
/// @param bond_length_angstrom  bond length of the scaled crystal
/// @param epsilon_ev            ε of the scaled crystal
StillingerWeber scaled_potential(double bond_length_angstrom, double epsilon_ev);

/// Diamond, two silicon atoms.
Structure diamond(const StillingerWeber& potential);
/// Returns the diamond structure with two germanium atoms.
Structure germanium(const StillingerWeber& potential);
/// Returns the zinc-blende structure with gallium at the origin and arsenic at a quarter of the
/// diagonal. The ions carry no charge, so that longitudinal and transverse optical phonons at Γ
/// have one frequency.
Structure gallium_arsenide(const StillingerWeber& potential);
/// Ideal wurtzite with four atoms: the same bonds in hexagonal stacking. It has two masses (silicon
/// and germanium) so that the two sublattices differ. It is a model without a real counterpart.
Structure wurtzite(const StillingerWeber& potential);
/// Hexagonal polytype of silicon with 4·`half` atoms: `half` bilayers are stacked in one sense and
/// `half` in the other. 2, 3 and 6 give the polytypes 4H, 6H and 12H with 8, 12 and 24 atoms. Bonds
/// and angles are those of diamond.
Structure polytype(const StillingerWeber& potential, int half);

}  // namespace quasi::model
