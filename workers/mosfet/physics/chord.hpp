#pragma once

#include <cmath>

#include "workers/backend/host_device.hpp"

/// The chord iteration of Schrödinger and Poisson with ϱ given, as both back ends run it.
namespace quasi::mosfet {

inline constexpr int kMaxChordSteps = 30;
inline constexpr double kLargestChordStep_v = 0.1;  ///< max |δV|; a longer step is shortened to it
inline constexpr double kChordResidual = 1e-6;      ///< of ‖P‖∞/‖(e/ε0)N_D‖∞
inline constexpr double kHopelessChordStep_v =
    1e6;  ///< where the iteration gives up; NaN is not below it either

/// Change of V over the previous step, from which the next step is extrapolated.
struct PreviousStep {
  double trend;      ///< V¹ − Vⁿ
  double curvature;  ///< V² − ½(Vⁿ + V¹)
  double ratio;      ///< Δt over that of the previous step; 0 if there is none
};

/// Extrapolates V of a stage to third order in Δt from the earlier stages.
/// @param v_n, v_1, v_2  V at the start of the step and after its stages 0 and 1; a later value is
///                       not read
QUASI_HD inline double predicted_potential(int stage, double v_n, double v_1, double v_2,
                                           const PreviousStep& previous) {
  const double bend = previous.curvature * previous.ratio * previous.ratio;
  return stage == 0   ? v_n + previous.ratio * previous.trend + 4.0 * bend
         : stage == 1 ? 0.5 * (v_n + v_1) + bend
                      : 2.0 * v_2 - v_n;
}
/// Returns V¹ − Vⁿ, which the next step's predictor needs.
QUASI_HD inline double potential_trend(double v_n, double v_1) { return v_1 - v_n; }
QUASI_HD inline double potential_curvature(double v_n, double v_1, double v_2) {
  return v_2 - 0.5 * (v_n + v_1);
}

/// Returns the largest |c_pp'| of a column, 1/(nm² eV): its largest ϱ over 1 meV
/// (docs/theory/mosfet.md 9.2).
QUASI_HD inline double response_cap(double largest_sheet_nm2) { return largest_sheet_nm2 / 1e-3; }

/// Returns c_pp' = (ϱ_p − ϱ_p')/(ε_p' − ε_p) of two levels, within ±cap.
QUASI_HD inline double response_quotient(double difference_nm2, double gap_ev, double cap) {
  return fabs(difference_nm2) > cap * gap_ev ? copysign(cap, difference_nm2)
                                             : difference_nm2 / gap_ev;
}

}  // namespace quasi::mosfet
