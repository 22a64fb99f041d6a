#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "examples/thermal/generate/nilpotent.hpp"

namespace quasi::model {

using Vector3 = std::array<double, 3>;
using Matrix3 = std::array<Vector3, 3>;
using Cell = std::array<int, 3>;

/// A crystal as a deck describes it.
struct Structure {
  Matrix3 lattice_angstrom{};     ///< row i is a_i
  std::vector<Vector3> position;  ///< fractional, one per atom
  std::vector<int> type;          ///< index into `element`
  std::vector<std::string> element;
  std::vector<double> mass_amu;  ///< per element
  std::vector<double> charge_e;  ///< per element; all zero when not polar
  Cell supercell{};              ///< of the second order

  int n_atoms() const { return static_cast<int>(position.size()); }
  Vector3 cartesian(const Vector3& fractional) const;
  /// Position of `atom` in cell `cell`, Å.
  Vector3 site(int atom, const Cell& cell) const;
  double volume() const;
};

/// One atom of the crystal: its number in the primitive cell and its cell.
struct Site {
  int atom = 0;
  Cell cell{};
  auto operator<=>(const Site&) const = default;
};

/// Force constants of one order n, sparse. The key is atom 1 in cell 0 and the sites of atoms 2…n;
/// the value is the 3ⁿ Cartesian tensor, last index fastest.
///
/// Values are whole numbers of `quantum` eV/Åⁿ. The derivatives of every energy term with respect
/// to its relative coordinates are rounded to the quantum once. All later steps (moving atom 0
/// against the others, sums over terms) are integer arithmetic. The sum over any slot is therefore
/// exactly zero, also in the decimal numbers of the file.
struct ForceConstants {
  static constexpr double kQuantum = 1e-9;
  using Key = std::vector<Site>;  // [0].cell is always zero
  int order = 0;
  std::map<Key, std::vector<std::int64_t>> block;
};

/// An energy term that depends on the positions of `site` through differences to site[0] alone.
struct EnergyTerm {
  std::vector<Site> site;
  /// Energy in eV from the 3(n-1) components of the differences r_m - r_0 in Å.
  std::function<Nilpotent(std::span<const Nilpotent>)> energy_ev;
};

/// Force constants of order 2, 3 or 4 of a crystal whose energy per cell is the sum of `terms`
/// (each term of the infinite crystal is a lattice translation of exactly one of them).
ForceConstants derivatives(const Structure& structure, const std::vector<EnergyTerm>& terms,
                           int order);

/// Sites within `cutoff_angstrom` of `atom` in cell 0, itself excluded, in a fixed order.
std::vector<Site> neighbours(const Structure& structure, int atom, double cutoff_angstrom);

}  // namespace quasi::model
