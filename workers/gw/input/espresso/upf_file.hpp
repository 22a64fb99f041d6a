#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace quasi::gw {

/// Holds a norm-conserving pseudopotential V_loc(r) + Σ_ij β_i D_ij β*_j on a radial grid.
struct Pseudopotential {
  struct Projector {
    int l = 0;                   ///< angular momentum
    std::vector<double> r_beta;  ///< r β(r), Bohr^−½, up to the largest cut-off radius
  };
  std::string element;           ///< chemical symbol
  double valence = 0.0;          ///< charge Z of the ion, e
  std::vector<double> r, rab;    ///< radii r_i and dr/di, Bohr
  std::vector<double> local_ry;  ///< V_loc at the radii, Ry
  std::vector<double> core;      ///< density of the core charge, electrons/Bohr³; may be empty
  std::vector<Projector> projectors;
  std::vector<double> d_ry;  ///< D_ij, Ry, [projector][projector]
};

/// Reads a pseudopotential file in version 2 of UPF, the format of Quantum ESPRESSO.
/// @throws InvalidInput with file, quantity, value and remedy. It refuses damaged files, other
///         versions, and ultrasoft, PAW and fully relativistic pseudopotentials.
/// @throws BackendAbsent if the program was built without pugixml
Pseudopotential read_upf(const std::filesystem::path& path);

}  // namespace quasi::gw
