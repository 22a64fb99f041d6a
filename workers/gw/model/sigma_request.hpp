#pragma once

#include <vector>

#include "workers/gw/model/band_path.hpp"
#include "workers/gw/model/outer_loop_options.hpp"
#include "workers/gw/model/sigma_options.hpp"

namespace quasi::gw {

/// Table [sigma] of a deck.
struct SigmaRequest {
  SigmaMethod method = SigmaMethod::kHybertsenLouie;
  int bands = 0;                    ///< 0: all
  double bare_cutoff_ry = 0.0;      ///< 0: the cut-off of the wavefunctions
  double screened_cutoff_ry = 0.0;  ///< 0: the cut-off of ε
  int band_min = 1;
  int band_max = 0;           ///< 0: two above the highest occupied band
  std::vector<Vec3> kpoints;  ///< reduced; empty: all
  InvalidMode invalid = InvalidMode::kStatic;
  ImaginaryRule imaginary_rule = ImaginaryRule::kQuadratic;
  bool remainder = false;  ///< static remainder
  bool exact_ch = false;   ///< static CH completed by closure, for COHSEX
  Derivative derivative = Derivative::kAnalytic;
  double derivative_step_ev = 0.0;  ///< 0: 0.02 for central, 1 for forward differences
  Solution solution = Solution::kLinearised;
  SpectrumGrid spectrum;
  SigmaSubspaceOptions subspace;
  bool full_matrix = false;
  SigmaMatrixOptions matrix;
  OuterLoopOptions outer;
  BandPath path;
  BandOrder path_order = BandOrder::kAutomatic;
  double imaginary_frequency_ev = 2.0 * kRydberg_ev;
  PoleRules rules;

  /// Returns true if Σ and V_xc are needed between different states.
  bool wants_matrix() const { return full_matrix || replaces_states(outer.kind); }
};

}  // namespace quasi::gw
