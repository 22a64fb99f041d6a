#pragma once

#include <vector>

#include "workers/mosfet/input/deck.hpp"
#include "workers/mosfet/kernels/mosfet_kernels.hpp"
#include "workers/mosfet/solver/sweep/point_result.hpp"

namespace quasi::mosfet {

/// Charge on the terminals by Gauss' law, per width: source, drain, gate; e/nm. With conduction
/// currents they obey Σ (I + dQ/dt) = 0.
struct TerminalCharge {
  double source = 0, drain = 0, gate = 0;
};
TerminalCharge terminal_charge(const TransportProblem& problem,
                               const std::vector<double>& potential_v);

/// Highest point of a level along x, through the parabola of the three highest nodes, eV.
double barrier_top_ev(const double* energy_ev, int nx);

/// Ballistic current over the tops of the levels' barriers, e/(fs nm):
///
///   2 Σ_{νp} (2kT/4π²ħ) [e^{−ε_max/kT} − e^{(−V_DS−ε_max)/kT}] ∫ e^{−E_y(k_y)/kT} dk_y,
///
/// with F0(η) in place of e^η for Fermi statistics.
double ballistic_current(const DeviceModel& model, const TransportProblem& problem,
                         const std::vector<double>& energy_ev, double vds_v);

/// I/I_bal; 0 where I_bal is below 1e-3 A/m, where a ratio says nothing.
double ballistic_ratio(double current_a_per_m, double ballistic_a_per_m);

/// Fields of a point that `output` names.
void add_fields(const OutputSettings& output, const TransportProblem& problem,
                const PointState& state, const Moments& moments, PointResult* result);

}  // namespace quasi::mosfet
