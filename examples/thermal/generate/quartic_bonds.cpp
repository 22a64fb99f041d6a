#include "examples/thermal/generate/quartic_bonds.hpp"

namespace quasi::model {

Structure QuarticBonds::structure() const {
  const double a = lattice_constant_angstrom;
  return {.lattice_angstrom = {{{a, 0, 0}, {0, a, 0}, {0, 0, a}}},
          .position = {{0, 0, 0}},
          .type = {0},
          .element = {"Si"},
          .mass_amu = {28.0855},
          .charge_e = {0.0},
          .supercell = {3, 3, 3}};
}

std::vector<EnergyTerm> QuarticBonds::terms() const {
  std::vector<EnergyTerm> bonds;
  for (int axis = 0; axis < 3; ++axis) {
    Cell neighbour{};
    neighbour[axis] = 1;
    bonds.push_back({{{0, {}}, {0, neighbour}}, [*this, axis](std::span<const Nilpotent> r) {
                       const Nilpotent stretch = r[axis] - Nilpotent(lattice_constant_angstrom);
                       Nilpotent energy;
                       for (int x = 0; x < 3; ++x) {
                         const bool along = x == axis;
                         const Nilpotent d = along ? stretch : r[x];
                         const double k = along ? along_ev_a2 : across_ev_a2;
                         energy =
                             energy + Nilpotent(0.5 * k) * d * d +
                             Nilpotent(cubic_ev_a3 * (along ? 1.0 / 6.0 : 0.5)) * stretch * d * d +
                             Nilpotent(quartic_ev_a4 / 24.0) * d * d * d * d;
                       }
                       return energy;
                     }});
  }
  return bonds;
}

}  // namespace quasi::model
