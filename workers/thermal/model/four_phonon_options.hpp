#pragma once

#include <cstdint>
#include <vector>

#include "workers/thermal/model/precision.hpp"
#include "workers/thermal/model/sampling_options.hpp"
#include "workers/thermal/physics/broadening.hpp"
#include "workers/thermal/physics/physical_constants.hpp"

namespace quasi::thermal {

/// Rules of four-phonon processes (docs/theory/thermal.md 7) and how they are summed.
struct FourPhononOptions {
  PhysicalConstants constants = kCodata2018;
  bool compat = false;  ///< σ and windows of FourPhonon
  Broadening broadening = Broadening::kSymmetric;
  double scale_broad = 1.0;
  double cut = 1.0;                 ///< window |Δω| ≤ cut·σ
  bool window_norm = true;          ///< divides δ by erf(cut)
  double sigma_least_rad_ps = 0.0;  ///< tuples with a smaller σ are left out
  double sigma_floor_rad_ps =
      0.0;  ///< smaller σ are raised; 0 without compat: chosen from the modes
  double omega_floor_rad_ps = 0.0;     ///< W is 0 when a partner is slower
  double tie_tolerance_rad_ps = 1e-9;  ///< windows are at least this
  bool exact_weights = true;           ///< tuples of coinciding phonons weigh ½ and 1/6
  double omega_max_rad_ps = 1e100;     ///< faster modes take no part
  bool average_degenerate = true;      ///< rates are averaged over each degenerate set
  bool use_symmetry = true;            ///< sums run over irreducible wedges
  double symmetry_tolerance_nm = 1e-5;
  Precision precision = Precision::kDouble;
  std::vector<double> temperatures_k;
  SamplingOptions sampling;
  bool iteration = false;                ///< four phonons take part in the iterated BTE
  std::int64_t memory_budget_bytes = 0;  ///< 0: by device
  double checkpoint_interval_s = 30.0;

  /// True where sums over degenerate sets are unchanged by exchanging phonons and by symmetry.
  bool has_symmetric_processes() const {
    return broadening == Broadening::kSymmetric && exact_weights && average_degenerate && !compat;
  }
  /// True where every process looks the same from each of its phonons, so that the collision
  /// operator is symmetric.
  bool has_symmetric_operator() const {
    return broadening == Broadening::kSymmetric && exact_weights && omega_floor_rad_ps == 0.0;
  }
};

}  // namespace quasi::thermal
