#pragma once

#include <cstdint>

#include "workers/thermal/model/precision.hpp"
#include "workers/thermal/physics/broadening.hpp"
#include "workers/thermal/physics/physical_constants.hpp"

namespace quasi::thermal {

/// Rules of three-phonon processes (docs/theory/thermal.md 4 and 6), and options of their sums.
struct ThreePhononOptions {
  PhysicalConstants constants = kCodata2018;
  Broadening broadening = Broadening::kSymmetric;
  double scale_broad = 1.0;
  double cut = 2.0;                 ///< window |Δω| ≤ cut·σ
  bool window_norm = true;          ///< divides δ by erf(cut)
  double omega_max_rad_ps = 1e100;  ///< faster modes take no part
  Precision precision = Precision::kDouble;
  std::int64_t memory_budget_bytes = 0;  ///< for process lists and work arrays; 0: chosen by device
};

}  // namespace quasi::thermal
