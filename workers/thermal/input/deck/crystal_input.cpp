#include "workers/thermal/input/deck/crystal_input.hpp"

#include <cmath>

#include "workers/backend/error.hpp"

namespace quasi::thermal {
namespace {

struct MassOfElement {
  double mass_amu = 0.0;
  double g_factor = 0.0;
};

/// Mass and isotope factor of one element. Values of the deck win, each for itself; the table of
/// natural compositions gives the rest. ShengBTE and FourPhonon ignore the deck's values where
/// `autoisotopes` is on.
/// @throws InvalidInput for an element without a natural composition whose values are needed.
MassOfElement mass_of(const Control& control, int type) {
  const bool deck_counts = !control.auto_isotopes || !control.compat;
  const double given_mass = deck_counts ? control.masses_amu[type] : std::nan("");
  const double given_g = deck_counts ? control.g_factors[type] : std::nan("");
  const NaturalElement* natural =
      control.auto_isotopes ? natural_element(control.elements[type]) : nullptr;
  const bool needs_mass = std::isnan(given_mass);
  const bool needs_g = std::isnan(given_g) && control.isotopes;
  if (natural == nullptr && (needs_mass || needs_g))
    throw InvalidInput(control.where({"elements"}) + ": element '" + control.elements[type] +
                       "' has no natural composition; give 'masses'" +
                       (needs_g ? " and 'gfactors', or isotopes = .false." : ""));
  MassOfElement found;
  found.mass_amu = needs_mass ? natural->mass_amu : given_mass;
  if (!std::isnan(given_g))
    found.g_factor = given_g;
  else if (natural != nullptr)
    found.g_factor = natural->g_factor;
  return found;
}

}  // namespace

Crystal make_crystal(const Control& control) {
  Crystal crystal;
  for (int i = 0; i < 3; ++i) crystal.lattice_nm[i] = control.lfactor_nm * control.lattvec[i];
  const double box =
      length(crystal.lattice_nm[0]) * length(crystal.lattice_nm[1]) * length(crystal.lattice_nm[2]);
  if (!std::isfinite(box) || !(crystal.volume_nm3() > 1e-6 * box) || crystal.volume_nm3() < 1e-9)
    throw InvalidInput(control.where({"lattvec", "lfactor"}) + ": 'lattvec' spans a cell of " +
                       std::to_string(crystal.volume_nm3()) +
                       " nm³; its three vectors must be linearly independent");
  crystal.position = control.positions;
  crystal.element = control.elements;
  crystal.epsilon = control.epsilon;
  crystal.born = control.born;
  for (int atom = 0; atom < control.n_atoms; ++atom) {
    const int type = control.types[atom] - 1;
    crystal.type.push_back(type);
    const MassOfElement of_element = mass_of(control, type);
    crystal.mass_amu.push_back(of_element.mass_amu);
    crystal.g_factor.push_back(of_element.g_factor);
    for (int other = 0; other < atom; ++other) {
      Vec3 d = crystal.position[atom] - crystal.position[other];
      for (double& x : d) x -= std::round(x);
      if (length(crystal.cartesian_nm(d)) < 1e-3)
        throw InvalidInput(control.where({"positions"}) + ": 'positions' puts atoms " +
                           std::to_string(other + 1) + " and " + std::to_string(atom + 1) +
                           " less than 0.001 nm apart");
    }
  }
  return crystal;
}

}  // namespace quasi::thermal
