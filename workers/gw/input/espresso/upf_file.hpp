#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace quasi::gw {

/// A norm-conserving pseudopotential on a radial grid, with energies in Ry and lengths in Bohr.
struct Pseudopotential {
  struct Projector {
    int l = 0;                   ///< angular momentum
    std::vector<double> r_beta;  ///< r β(r) up to the cut-off radius of all projectors
  };
  std::string element;
  double valence = 0.0;        ///< charge of the ion
  std::vector<double> r, rab;  ///< radii and their weights dr/di
  std::vector<double> local_ry;
  std::vector<double> core;  ///< density of the core charge; empty without one
  std::vector<Projector> projectors;
  std::vector<double> d_ry;  ///< D_ij, [projector][projector]
};

/// Reads a file of the format UPF, version 2.
/// @throws InvalidInput with file, quantity, value and remedy: for other versions, for ultrasoft,
///         PAW and fully relativistic pseudopotentials, and for damaged files
Pseudopotential read_upf(const std::filesystem::path& path);

}  // namespace quasi::gw
