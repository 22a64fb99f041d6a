#pragma once

#include <array>
#include <vector>

#include "workers/backend/progress.hpp"
#include "workers/mosfet/input/deck.hpp"
#include "workers/mosfet/kernels/beam/beam_kernels.hpp"
#include "workers/mosfet/solver/beam/beam_start.hpp"
#include "workers/mosfet/solver/beam/elastic_tables.hpp"
#include "workers/mosfet/solver/sweep/point_result.hpp"
#include "workers/mosfet/solver/transport/transport_setup.hpp"

namespace quasi::mosfet {

/// The part of a beam problem that all bias points share.
struct BeamDevice {
  const DeviceModel& model;
  const Structure& structure;
  const TransportProblem& problem;  ///< processes and constants of the bands
  const ElasticTables& elastic;
  Contacts contacts;
  BeamMesh mesh;
  double tolerance_v = 1e-6;
  const BeamGrid* grid = nullptr;  ///< grid of all points; null: chosen for each point
};

/// A self-consistent steady state.
struct BeamSteadyState {
  Equilibrium field;  ///< V, levels and densities of the last Schrödinger–Poisson solution
  BeamGrid grid;
  std::vector<double> mean;  ///< ḡ [n_states][nx][n_h]
  /// Factors of the electrons that enter at source and drain; 1 for fixed inflow.
  std::array<double, 2> inflow_scale{1.0, 1.0};
  std::array<double, 2> inflow_shift_ev{};  ///< shifts of E_F that belong to these factors
  BeamFluxes fluxes;
  BeamStart passed_on;  ///< from which the next point of the chain starts
  int outer = 0;        ///< number of solutions of the transport problem
  int sweeps = 0;       ///< number of line solves in all of them
  double last_step_v = 0;
  double transport_s = 0;  ///< time of the transport solutions
  double total_s = 0;      ///< time of the whole point
};

/// Begin here: solves transport, Schrödinger and Poisson together (docs/theory/mosfet.md 17.5). It
/// takes Gummel steps with Anderson mixing of V. kernels/beam solves at fixed levels,
/// beam_report.hpp makes the results, beam_sweep.hpp runs the points of a deck.
/// @param start  guess of the solution; null: the quasi-equilibrium of the bias
/// @throws NotConverged with the steps of V
BeamSteadyState solve_beam_point(const BeamDevice& device, const BiasPoint& bias,
                                 BeamKernels& kernels, Progress& progress,
                                 const BeamStart* start = nullptr);

/// Solves a point through points at a quarter, a half and three quarters of its V_DS. Each of them
/// extrapolates the two points before it. @throws NotConverged as solve_beam_point()
BeamSteadyState solve_through_lower_bias(const BeamDevice& device, const BiasPoint& bias,
                                         BeamKernels& kernels, Progress& progress);

/// Seconds of the parts of one bias point.
struct BeamStepSeconds {
  double start = 0;        ///< quasi-equilibrium of the bias
  double preparation = 0;  ///< volumes, areas and rates of one outer step
  double line_solve = 0;   ///< one line solve of transport
  double field = 0;        ///< Schrödinger and Poisson of one outer step
};

/// Times the parts of a bias point with one line solve, without finding its steady state.
BeamStepSeconds time_beam_step(const BeamDevice& device, const BiasPoint& bias,
                               BeamKernels& kernels);

}  // namespace quasi::mosfet
