#pragma once

#include "workers/backend/host_device.hpp"

namespace quasi::mosfet {

/// One stage of the TVD-RK3 scheme [shu1988] (docs/theory/mosfet.md 8): out = share_n Φⁿ + share_s
/// (Φˢ + Δt L(Φˢ)), and the weight of L(Φˢ) in the whole step.
struct RungeKuttaStage {
  double share_n, share_s, flux_weight;
};

/// Returns a stage. @param stage  0, 1 or 2
QUASI_HD constexpr RungeKuttaStage runge_kutta_stage(int stage) {
  return stage == 0   ? RungeKuttaStage{0.0, 1.0, 1.0 / 6.0}
         : stage == 1 ? RungeKuttaStage{0.75, 0.25, 1.0 / 6.0}
                      : RungeKuttaStage{1.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0};
}

}  // namespace quasi::mosfet
