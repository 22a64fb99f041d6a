#include "workers/thermal/input/crystal_input.hpp"

#include <cmath>

#include "workers/backend/error.hpp"

namespace quasi::thermal {

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
    if (control.auto_isotopes) {
      const NaturalElement* natural = natural_element(control.elements[type]);
      if (natural == nullptr)
        throw InvalidInput(
            control.where({"elements"}) + ": element '" + control.elements[type] +
            "' has no tabulated natural composition; set autoisotopes = .false. and give "
            "'masses' and 'gfactors'");
      crystal.mass_amu.push_back(natural->mass_amu);
      crystal.g_factor.push_back(natural->g_factor);
    } else {
      crystal.mass_amu.push_back(control.masses_amu[type]);
      crystal.g_factor.push_back(control.g_factors[type]);
    }
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
