#pragma once

#include <optional>
#include <vector>

#include "workers/mosfet/input/deck.hpp"

namespace quasi::mosfet {

/// One finished point of a current–voltage family.
struct IvPoint {
  BiasPoint bias;
  double current_a_per_m = 0;
  double gate_charge_per_nm = 0;  ///< e/nm of width
};

/// Figures of one transfer curve I_D(V_GS) at fixed V_DS. A figure is absent if the points are too
/// few or their range is unsuitable.
struct TransferCurve {
  double vds_v = 0;
  std::vector<double> vgs_v;  ///< ascending
  std::vector<double> current_a_per_m;
  std::vector<double> transconductance_s_per_m;  ///< ∂I/∂V_GS at every point, second order
  std::vector<double> gate_capacitance_f_per_m;  ///< C_gg = ∂Q_gate/∂V_GS, per width
  std::optional<double> threshold_v;             ///< constant current, log I linear between points
  std::optional<double> threshold_extrapolated_v;  ///< V_GS of the tangent at maximum g_m, minus
                                                   ///< V_DS/2
  std::optional<double> swing_mv_per_decade;       ///< smallest ΔV_GS/Δlog₁₀I of neighbours
};

/// A family of transfer curves.
struct DerivedFigures {
  std::vector<TransferCurve> curves;    ///< by ascending V_DS, each with at least two V_GS
  std::optional<double> dibl_mv_per_v;  ///< (V_th(low) − V_th(high))/ΔV_DS, constant current
};

/// Computes the figures of a family. @param threshold_a_per_m  current that defines V_th
DerivedFigures derive_figures(const std::vector<IvPoint>& points, double threshold_a_per_m);

}  // namespace quasi::mosfet
