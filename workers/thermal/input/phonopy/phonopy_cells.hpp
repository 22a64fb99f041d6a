#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "workers/thermal/input/phonopy/phonopy_units.hpp"
#include "workers/thermal/physics/vectors.hpp"

namespace quasi::thermal {

/// A periodic cell as phonopy writes it.
struct PhonopyCell {
  Mat3 lattice_angstrom{};          ///< row i is a_i
  std::vector<std::string> symbol;  ///< [atom]
  std::vector<Vec3> position;       ///< [atom] fractional in this cell
  std::vector<double> mass_amu;     ///< [atom]; empty where the file has none (POSCAR)

  int n_atoms() const { return static_cast<int>(position.size()); }
  Vec3 cartesian_angstrom(int atom) const { return transpose(lattice_angstrom) * position[atom]; }
};

/// Cells of a phonopy or phono3py yaml file, and its Born charges where it has them.
struct PhonopyCells {
  PhonopyCell primitive;
  PhonopyCell supercell;                        ///< of the third order, and of the second …
  std::optional<PhonopyCell> phonon_supercell;  ///< … unless it has its own
  std::vector<Mat3> born;                       ///< [atom][field][displacement]; empty if not given
  Mat3 epsilon = kIdentity;
  PhonopyUnits units;  ///< of the files of this deck; the cells above are in Å
};

/// Reads the cells and converts them to Å. @throws InvalidInput naming file and key.
PhonopyCells read_phonopy_yaml(const std::filesystem::path& file);

/// POSCAR of VASP 5: scale (negative: the cell's volume in Å³), lattice, element names, counts,
/// "Direct" or "Cartesian". @throws InvalidInput naming file and line.
PhonopyCell read_poscar(const std::filesystem::path& file);

/// n1 × n2 × n3 copies of a cell in phonopy's order: atom slowest, first axis fastest.
PhonopyCell repeat_cell(const PhonopyCell& cell, const Index3& repeats);

/// BORN: a conversion factor or comment line, nine numbers of ε, then nine for every
/// symmetry-distinct atom of the primitive cell; spread over the cell by its space group.
/// @throws InvalidInput naming file, line and how many atoms are symmetry-distinct.
void read_born(const std::filesystem::path& file, double symmetry_tolerance_angstrom,
               PhonopyCells& cells);

}  // namespace quasi::thermal
