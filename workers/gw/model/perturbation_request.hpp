#pragma once

#include <string>
#include <vector>

namespace quasi::gw {

/// Table [perturbation] of a deck: displacements whose first order of Σ the job calculates.
struct PerturbationRequest {
  bool wanted = false;             ///< true if the deck has the table
  std::vector<int> atoms;          ///< counted from 1; empty: all atoms of the cell
  std::string directions = "xyz";  ///< letters of the Cartesian directions
  double check_step_bohr = 0.0;    ///< step of finite displacements that check ∂Σ; 0: no check
};

}  // namespace quasi::gw
