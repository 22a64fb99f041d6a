#pragma once

#include <vector>

#include "workers/thermal/model/check_options.hpp"
#include "workers/thermal/model/four_phonon_options.hpp"
#include "workers/thermal/model/rate_options.hpp"
#include "workers/thermal/model/renormalisation_options.hpp"
#include "workers/thermal/model/symmetry.hpp"
#include "workers/thermal/model/three_phonon_options.hpp"
#include "workers/thermal/model/transport_options.hpp"

namespace quasi::thermal {

/// Settings of a convergence study.
struct StudyOptions {
  bool enabled = false;
  std::vector<int> meshes;           ///< divisions of the first axis; empty: from the case's mesh
  std::vector<double> scale_broads;  ///< empty: from the width of the case
};

/// Options of every step from modes to κ. Each step takes its own part.
struct CaseOptions {
  bool only_harmonic = false;  ///< modes alone, no κ
  SymmetryOptions symmetry;    ///< of find_symmetry
  TransportOptions transport;  ///< of κ; `transport.harmonic` of the modes
  RateOptions rates;
  ThreePhononOptions three_phonon;
  FourPhononOptions four_phonon;  ///< used where the model has fourth-order constants
  StudyOptions study;
  RenormalisationOptions renormalisation;
  CheckOptions checks;
  bool derivative = false;               ///< κ is differentiated by the third-order constants
  bool derivative_fourth_order = false;  ///< and by those of fourth order, with four phonons
  bool three_phonons_alone = false;      ///< with four phonons, κ without them is computed too
  double checkpoint_interval_s = 30.0;
  double collision_checkpoint_limit_bytes = 0.0;  ///< a larger collision operator is not kept

  double scale_broad() const { return three_phonon.scale_broad; }
  void set_scale_broad(double scale_broad) {
    three_phonon.scale_broad = scale_broad;
    four_phonon.scale_broad = scale_broad;
  }
};

}  // namespace quasi::thermal
