#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "workers/gw/model/eigensolver_options.hpp"
#include "workers/gw/physics/crystal.hpp"

namespace quasi::gw {

/// A diamond or zincblende crystal described by the empirical pseudopotentials of Cohen and
/// Bergstresser [cohen1966] (docs/theory/gw.md 11). It is a mean field without files. V_xc is
/// undefined there, so that only Σ has a meaning.
///
///   H_GG'(k) = |k+G|² δ + (1/N_at) Σ_a v_a(|G−G'|²) e^{−i(G−G')·τ_a}
struct EmpiricalCrystal {
  std::string name = "silicon";  ///< a name of empirical_crystal_names()
  double lattice_bohr = 0.0;     ///< lattice parameter; 0: that of the crystal
  bool cubic_cell = false;       ///< 8 atoms instead of 2
  IVec3 repeats{1, 1, 1};        ///< supercell of that cell
  /// Deformation x → F x of the whole crystal. Each form factor stays with its G.
  Mat3 deformation{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
  /// Shift of all atoms, reduced. A shift breaks inversion about the origin.
  Vec3 origin_shift{};
  /// Length by which every atom is displaced in a random direction of its own; 0: no disorder.
  /// Form factors between the shells are then taken from interpolated_form_factor().
  double disorder_bohr = 0.0;
  int disorder_seed = 1;  ///< of the directions
  /// Spin–orbit strengths λ of both kinds of atoms, Ry Bohr² (docs/theory/gw.md 15.1). With
  /// them the states are spinors, even if both are 0.
  std::optional<std::array<double, 2>> spin_orbit_ry_bohr2;
  double wavefunction_cutoff_ry = 11.0;
  IVec3 k_grid{1, 1, 1};
  int bands = 20;
  /// Shift of the second set of states, or direction and length for k·p; reduced.
  Vec3 q0{0.001, 0.0, 0.0};
  /// True: q → 0 by k·p, which is exact because H is local. False: q → 0 by a second set of states.
  bool by_velocity = false;
  EigensolverOptions eigensolver;

  int n_spinor() const { return spin_orbit_ry_bohr2 ? 2 : 1; }
  /// Returns true if H acts on spins.
  bool couples_spins() const {
    return spin_orbit_ry_bohr2 && *spin_orbit_ry_bohr2 != std::array<double, 2>{};
  }
};

/// Form factors of one crystal, Ry, at |G|² = 3, 4, 8, 11 in units of (2π/a)²: the symmetric and
/// the antisymmetric part of the potentials of its two atoms.
struct FormFactors {
  const char* name;
  double lattice_bohr;
  double symmetric_ry[4];
  double antisymmetric_ry[4];
  int atomic_number[2];
};

/// |G|² from which on interpolated form factors vanish, in units of (2π/a)².
inline constexpr double kEndOfFormFactors = 12.0;

/// Returns the form factor of one atom at any |G|, Ry (docs/theory/gw.md 11). It is piecewise
/// linear in |G|² through the shells where the structure factor of the ideal crystal does not
/// vanish. At 0 it is −(2/3) E_F of the valence electrons, with an antisymmetric part of 0. From
/// kEndOfFormFactors on it vanishes.
/// @param g2    |G|² in units of (2π/a)²
/// @param kind  0 or 1: the atom of the pair
double interpolated_form_factor(const FormFactors& factors, double lattice_bohr, double g2,
                                int kind);

/// A square lattice of wells −depth e^{−r²/2w²} in one plane, with vacuum above and below: a
/// model of an insulating monolayer. A well has two electrons.
struct WellModel {
  const char* name;
  double lattice_bohr, height_bohr;  ///< edges of the cell in the plane and across it
  double depth_ry, width_bohr;
};

/// Returns the wells of a built-in monolayer; null: the crystal has form factors.
const WellModel* well_model(const std::string& name);

/// Returns the form factors of a crystal. @throws InvalidInput if no crystal of that name is built
/// in.
const FormFactors& form_factors(const std::string& name);

/// Returns the names of the built-in crystals.
std::vector<std::string> empirical_crystal_names();

}  // namespace quasi::gw
