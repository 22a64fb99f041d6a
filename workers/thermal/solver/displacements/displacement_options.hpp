#pragma once

#include "workers/thermal/physics/vectors.hpp"

namespace quasi::thermal {

/// Holds the choices of a plan of finite displacements (docs/theory/thermal.md 15).
struct DisplacementOptions {
  Index3 supercell{1, 1, 1};         ///< repeats of the given cell along its vectors
  int order = 2;                     ///< highest order of the constants, 2 to 4
  double cutoff_3rd_angstrom = 0.0;  ///< largest distance between two atoms of a triple
  double cutoff_4th_angstrom = 0.0;  ///< largest distance between two atoms of a quartet
  double distance_angstrom = 0.01;   ///< length of one displacement
  double symprec_angstrom = 1e-5;    ///< tolerance of the space group
};

}  // namespace quasi::thermal
