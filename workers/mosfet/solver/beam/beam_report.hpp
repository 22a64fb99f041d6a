#pragma once

#include <string>

#include "workers/mosfet/solver/beam/beam_point.hpp"

namespace quasi::mosfet {

/// Builds the result of a point of the beam scheme: numbers, fluxes, the fields that the deck asks
/// for, and the status by judge_point().
PointResult report_beam_point(const Deck& deck, const BeamDevice& device, const BiasPoint& bias,
                              const BeamSteadyState& state);

/// Returns the line of the log for a finished point: its current, its cost and its status.
std::string log_of_beam_point(const PointResult& point, const BeamSteadyState& state);

/// Returns the number of cells of phase space of one bias point, both signs of k_x.
double beam_cells(const Deck& deck, const Structure& structure);
/// Returns the bytes that the kernels of one bias point hold on their device, with those of its
/// small-signal response.
double beam_point_bytes(const Deck& deck, const Structure& structure);

}  // namespace quasi::mosfet
