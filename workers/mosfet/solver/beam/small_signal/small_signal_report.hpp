#pragma once

#include <optional>
#include <vector>

#include "workers/backend/progress.hpp"
#include "workers/mosfet/solver/beam/small_signal/small_signal.hpp"

namespace quasi::mosfet {

/// Figures of merit of Y at increasing frequencies, with the source grounded. A figure that the
/// frequencies do not reach is absent.
struct GainFigures {
  std::optional<double> cutoff_hz;               ///< f_T: |h₂₁| crosses 1
  std::optional<double> cutoff_extrapolated_hz;  ///< f |h₂₁| at the lowest frequency above 0
  std::optional<double> oscillation_hz;          ///< f_max: Mason's gain U crosses 1
  std::optional<double> oscillation_extrapolated_hz;  ///< f √U at the lowest frequency above 0
};

/// Computes the figures of Y at increasing frequencies. Between two frequencies the logarithm of a
/// gain is linear in that of the frequency.
GainFigures gain_figures(const std::vector<Admittance>& y);

/// Computes Y of a steady point at all frequencies of the deck, on `processor` where it has tables
/// (BeamSmallSignal). It adds the arrays
/// `small_signal/*` and the numbers of docs/reference/mosfet.md to the point, or nothing without
/// frequencies. @throws NotConverged, Cancelled
void add_small_signal(const SmallSignalSettings& settings, const BeamDevice& device,
                      const Device& processor, const BeamSteadyState& state, Progress& progress,
                      PointResult* point);

}  // namespace quasi::mosfet
