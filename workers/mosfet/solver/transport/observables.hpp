#pragma once

#include <vector>

#include "workers/mosfet/input/deck.hpp"
#include "workers/mosfet/kernels/mosfet_kernels.hpp"
#include "workers/mosfet/solver/sweep/point_result.hpp"

namespace quasi::mosfet {

/// Charge on the terminals by Gauss' law, per width: source, drain, gate; e/nm. With the conduction
/// currents they obey Σ (I + dQ/dt) = 0.
struct TerminalCharge {
  double source = 0, drain = 0, gate = 0;
};
/// Computes the charge on the terminals.
TerminalCharge terminal_charge(const TransportProblem& problem,
                               const std::vector<double>& potential_v);

/// Returns the highest point of a level along x, through the parabola of the three highest nodes,
/// eV.
double barrier_top_ev(const double* energy_ev, int nx);

/// Returns the height of the lowest barrier of all subbands above the higher E_F of the contacts,
/// eV. @param energy_ev  levels without valley offsets [families][subbands][nx]
double barrier_height_ev(const Structure& s, const std::vector<double>& energy_ev, double vds_v);

/// Returns the ballistic current over the tops of the levels' barriers, e/(fs nm)
/// (docs/theory/mosfet.md 11) [natori1994]:
///
///   2 Σ_{νp} (2kT/4π²ħ) [e^{−ε_max/kT} − e^{(−V_DS−ε_max)/kT}] ∫ e^{−E_y(k_y)/kT} dk_y.
///
/// For Fermi statistics F0(η) replaces e^η.
double ballistic_current(const DeviceModel& model, const TransportProblem& problem,
                         const std::vector<double>& energy_ev, double vds_v);

/// Returns I/I_bal, or 0 if I_bal is below 1e-3 A/m, where the ratio has no meaning.
double ballistic_ratio(double current_a_per_m, double ballistic_a_per_m);

/// Adds a quantity per electron: `name` of every state and `<name>_mean` of every column.
/// @param sum  its sum over the electrons of one valley [n_valleys][subbands][nx]
/// @param sheet_nm2  ϱ of one valley, in the layout of `sum`
/// @param shape  {n_valleys, subbands, nx}
void add_per_electron(const std::string& name, const char* units, const std::vector<double>& sum,
                      const std::vector<double>& sheet_nm2, const std::vector<std::int64_t>& shape,
                      PointResult* result);

/// Adds the fields of a point that `output` names.
void add_fields(const OutputSettings& output, const TransportProblem& problem,
                const PointState& state, const Moments& moments, PointResult* result);

}  // namespace quasi::mosfet
