#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "workers/mosfet/input/deck.hpp"
#include "workers/mosfet/solver/sweep/point_progress.hpp"
#include "workers/mosfet/solver/sweep/point_result.hpp"
#include "workers/mosfet/solver/sweep/sweep_pieces.hpp"

namespace quasi::mosfet {

/// A finished bias point.
struct FinishedPoint {
  const PointProgress& progress;
  BiasPoint present;  ///< the bias at the end, waveforms included
  double dt_fs = 0;   ///< last time step
  PointState state;
  Moments moments;
  PointStatus status = PointStatus::kConverged;
};

/// Builds the result of a point: numbers, histories and the fields that the deck asks for.
PointResult report_point(const Deck& deck, const TransportProblem& problem,
                         const FinishedPoint& finished);

/// Returns the currents into the device at source, drain and gate between consecutive rows of the
/// terminals. A current is conduction plus the change of the terminal's charge. Their sum is zero
/// to the tolerance of Poisson's equation. @param terminals  [rows][kTerminalWidth] @return
/// [rows−1][kTerminalCurrentWidth]
std::vector<double> terminal_currents(const std::vector<double>& terminals);

/// Copies the pdf of a state to single precision. @param pdf_scale  Φ*
PdfSnapshot take_snapshot(const PointState& state, double pdf_scale);
/// Writes the file pdf_<point>_<number>.h5 in `directory`.
void write_snapshot(const Deck& deck, const TransportProblem& problem, int point, int number,
                    const PdfSnapshot& snapshot, const std::filesystem::path& directory);

}  // namespace quasi::mosfet
