#pragma once

#include <vector>

#include "examples/thermal/generate/crystal_model.hpp"

namespace quasi::model {

/// A simple cubic crystal with one atom whose nearest neighbours are joined by bonds with
///   V = ½ k_L d_L² + g d_L⁴/24 + c d_L³/6 + Σ_T (½ k_T d_T² + g d_T⁴/24 + ½ c d_L d_T²),
/// where d_L is the change of the bond along itself and d_T are the two changes across it. With
/// k_T < 0 all transverse branches are unstable, and thermal motion stabilises them. It is a model
/// without a real counterpart.
struct QuarticBonds {
  double along_ev_a2 = 5.0;
  double across_ev_a2 = -0.3;
  double cubic_ev_a3 = -1.5;
  double quartic_ev_a4 = 60.0;
  double lattice_constant_angstrom = 3.0;

  Structure structure() const;
  /// The three bonds of one cell.
  std::vector<EnergyTerm> terms() const;
};

}  // namespace quasi::model
