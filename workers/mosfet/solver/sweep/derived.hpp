#pragma once

#include <optional>
#include <vector>

#include "workers/mosfet/input/deck.hpp"

namespace quasi::mosfet {

/// One finished point of a current–voltage family.
struct IvPoint {
  BiasPoint bias;
  double current_a_per_m = 0;
  double gate_charge_per_nm = 0;   ///< e/nm of width
  double error_a_per_m = 0;        ///< error of the current, as far as it is known
  bool is_resolved = true;         ///< false: the current violates a law, or is not steady
  bool is_below_threshold = true;  ///< the barrier is at least 3 kT above E_F of both contacts
};

/// A figure with its error.
struct FigureOfMerit {
  double value = 0;
  double error = 0;
};

/// Figures of one transfer curve I_D(V_GS) at fixed V_DS. A figure is absent where the points do
/// not define it.
struct TransferCurve {
  double vds_v = 0;
  std::vector<double> vgs_v;  ///< ascending
  std::vector<double> current_a_per_m;
  std::vector<double> transconductance_s_per_m;  ///< ∂I/∂V_GS at every point, second order
  std::vector<double> gate_capacitance_f_per_m;  ///< C_gg = ∂Q_gate/∂V_GS, per width
  /// V_GS at a constant current, log I linear between points. Defined if the two points around it
  /// are resolved.
  std::optional<FigureOfMerit> threshold_v;
  /// V_GS of the tangent at maximum g_m, minus V_DS/2. Defined if that point is resolved.
  std::optional<FigureOfMerit> threshold_extrapolated_v;
  /// Smallest ΔV_GS/Δlog₁₀I of neighbours that are resolved and below threshold.
  std::optional<FigureOfMerit> swing_mv_per_decade;
  /// I at the highest V_GS over I at the lowest. Defined if both points are resolved and carry a
  /// current.
  std::optional<FigureOfMerit> on_off_ratio;
};

/// A family of transfer curves.
struct DerivedFigures {
  std::vector<TransferCurve> curves;  ///< by ascending V_DS, each with at least two V_GS
  /// (V_th(low) − V_th(high))/ΔV_DS, constant current
  std::optional<FigureOfMerit> dibl_mv_per_v;
};

/// Computes the figures of a family. Their errors contain the errors of the currents and the change
/// against the neighbouring pair of points, which measures the curvature. @param threshold_a_per_m
/// current that defines V_th
DerivedFigures derive_figures(const std::vector<IvPoint>& points, double threshold_a_per_m);

}  // namespace quasi::mosfet
