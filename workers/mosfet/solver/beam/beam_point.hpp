#pragma once

#include <vector>

#include "workers/backend/progress.hpp"
#include "workers/mosfet/input/deck.hpp"
#include "workers/mosfet/kernels/beam/beam_kernels.hpp"
#include "workers/mosfet/solver/sweep/point_result.hpp"
#include "workers/mosfet/solver/transport/transport_setup.hpp"

namespace quasi::mosfet {

/// The part of a beam problem that all bias points share.
struct BeamDevice {
  const DeviceModel& model;
  const Structure& structure;
  const TransportProblem& problem;  ///< processes and constants of the bands
  Contacts contacts;
  BeamMesh mesh;
  double tolerance_v = 1e-6;
};

/// A self-consistent steady state.
struct BeamSteadyState {
  Equilibrium field;  ///< V, levels and densities of the last Schrödinger–Poisson solution
  BeamGrid grid;
  std::vector<double> mean;  ///< ḡ [n_states][nx][n_h]
  BeamFluxes fluxes;
  int outer = 0;   ///< number of solutions of the transport problem
  int sweeps = 0;  ///< number of line solves in all of them
  double last_step_v = 0;
  double transport_s = 0;  ///< time of the transport solutions
  double total_s = 0;      ///< time of the whole point
};

/// Begin here: solves transport, Schrödinger and Poisson together (docs/theory/mosfet.md 17.5). It
/// takes Gummel steps with Anderson mixing of V, from the quasi-equilibrium of the bias.
/// kernels/beam solves at fixed levels, beam_report.cpp makes the results. @throws NotConverged
/// with the steps of V
BeamSteadyState solve_beam_point(const BeamDevice& device, const BiasPoint& bias,
                                 BeamKernels& kernels, Progress& progress);

/// Resources of a run with the beam scheme.
struct BeamResources {
  std::vector<Device> devices;           ///< at least one
  std::int64_t memory_budget_bytes = 0;  ///< for the bias points of one device; 0: unlimited
};

/// Solves all bias points of a deck with run.scheme = "beam", each for its steady state. Several
/// points run at once on every CUDA device, so that one point's Schrödinger–Poisson solution on the
/// host hides behind the transport of others. The results do not depend on their number.
/// @throws NotConverged, OutOfMemory if not even one point fits into the budget
std::vector<PointResult> beam_points(const Deck& deck, const BeamResources& resources,
                                     Progress& progress);

/// Returns the number of cells of phase space of one bias point, both signs of k_x.
double beam_cells(const Deck& deck, const Structure& structure);

}  // namespace quasi::mosfet
