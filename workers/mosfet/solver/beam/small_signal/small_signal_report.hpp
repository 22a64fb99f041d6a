#pragma once

#include <optional>
#include <vector>

#include "workers/backend/progress.hpp"
#include "workers/mosfet/solver/beam/small_signal/small_signal.hpp"

namespace quasi::mosfet {

/// Holds figures of merit of Y with the source grounded. A figure that the frequencies do not reach
/// is absent.
struct GainFigures {
  std::optional<double> cutoff_hz;               ///< f_T: |h₂₁| crosses 1
  std::optional<double> cutoff_extrapolated_hz;  ///< f |h₂₁| at the lowest frequency above 0
  std::optional<double> oscillation_hz;          ///< f_max: Mason's gain U crosses 1
  std::optional<double> oscillation_extrapolated_hz;  ///< f √U at the lowest frequency above 0
};

/// Computes the figures of Y at increasing frequencies. Between two frequencies the logarithm of a
/// gain is linear in the logarithm of the frequency.
GainFigures gain_figures(const std::vector<Admittance>& y);

/// Computes Y of a steady point at all frequencies of the deck and adds it to the point, as the
/// arrays `small_signal/*` and as numbers of the admittances and gains. Nothing is added without
/// frequencies.
/// @param processor  runs the products where they have tables (BeamSmallSignal)
/// @throws NotConverged if transport or GMRES does not converge, Cancelled if the job is cancelled
void add_small_signal(const SmallSignalSettings& settings, const BeamDevice& device,
                      const Device& processor, const BeamSteadyState& state, Progress& progress,
                      PointResult* point);

}  // namespace quasi::mosfet
