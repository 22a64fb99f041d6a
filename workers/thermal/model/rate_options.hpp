#pragma once

#include "workers/thermal/model/sampling_options.hpp"

namespace quasi::thermal {

/// Selects the scattering of a run besides four phonons.
struct RateOptions {
  bool isotopes = true;
  double boundary_length_nm = 0.0;  ///< adds |v|/L to the rates; 0: none
  SamplingOptions three_phonon_sampling;
  double checkpoint_interval_s = 30.0;  ///< of samples
};

}  // namespace quasi::thermal
