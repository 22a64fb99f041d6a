#pragma once

#include <string>
#include <string_view>

namespace YAML {
class Node;
}

namespace quasi::thermal {

/// Units in which a program of electronic structure, and hence phonopy and phono3py, write a deck
/// (docs/theory/thermal.md 1.6).
struct PhonopyUnits {
  double length_angstrom = 1.0;         ///< of lattices and Cartesian positions
  double second_order_ev_per_a2 = 1.0;  ///< of second-order constants

  /// Returns the unit of constants of an order in eV/Å^order. Every order beyond the second has one
  /// more inverse length.
  double constants(int order) const;
};

/// Returns the units that a yaml of phonopy or phono3py states: those of `physical_unit`, else
/// those of its `calculator`, else Å and eV/Å².
/// @param root  the yaml's map
/// @param file  its name, for messages
/// @throws InvalidInput for an unknown calculator or unit, listing the known ones.
PhonopyUnits units_of_yaml(const YAML::Node& root, const std::string& file);

/// Returns a unit of force constants such as "Ry/au^2" or "eV/angstrom.au" in eV/Å^order.
/// @param place  where the unit stands, for messages
/// @throws InvalidInput for unknown words and for another power of length than `order`.
double force_constant_unit(std::string_view text, int order, const std::string& place);

}  // namespace quasi::thermal
