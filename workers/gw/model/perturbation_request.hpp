#pragma once

#include <optional>
#include <string>
#include <vector>

#include "workers/gw/model/phonon_modes.hpp"

namespace quasi::gw {

/// Table [perturbation] of a deck: displacements whose first order of Σ the job calculates.
struct PerturbationRequest {
  bool wanted = false;             ///< true if the deck has the table
  std::vector<int> atoms;          ///< counted from 1; empty: all atoms of the cell
  std::string directions = "xyz";  ///< letters of the Cartesian directions
  double check_step_bohr = 0.0;    ///< step of finite displacements that check ∂Σ; 0: no check
  /// Phonon modes whose first order the job writes too; absent: none.
  std::optional<PhononModes> modes;
};

}  // namespace quasi::gw
