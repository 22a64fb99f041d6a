#include "workers/mosfet/solver/sweep/point_report.hpp"

#include <algorithm>

#include "workers/mosfet/physics/working_units.hpp"
#include "workers/mosfet/solver/transport/observables.hpp"
#include "workers/mosfet/solver/verdict/point_verdict.hpp"

namespace quasi::mosfet {
namespace {

// Adds the numbers of a finished point under their names in the summary.
void add_numbers(const Deck& deck, const TransportProblem& problem, const FinishedPoint& finished,
                 const std::vector<double>& profile, PointResult* result) {
  const PointProgress& at = finished.progress;
  const PointState& state = finished.state;
  const SteadyWindow& w = at.window;
  auto& n = result->numbers;
  n["current_a_per_m"] = profile[profile.size() / 2];
  n["current_mean_a_per_m"] = w.mean * kCurrentUnit_a_m;
  n["current_source_a_per_m"] = profile.front();
  n["current_drain_a_per_m"] = profile.back();
  n["current_spread_a_per_m"] = w.spread * kCurrentUnit_a_m;
  n["current_spread_with_contacts_a_per_m"] = w.spread_contacts * kCurrentUnit_a_m;
  n["window_fs"] = w.length_fs;
  n["current_drift_a_per_m"] = w.drift * kCurrentUnit_a_m;
  n["steps"] = static_cast<double>(state.step);
  n["time_fs"] = state.time_fs;
  n["dt_fs"] = finished.dt_fs;
  n["min_pdf"] = at.min_pdf;
  n["top_share"] = at.top_share;
  if (problem.pauli) {
    n["lowest_occupation"] = at.filling.lowest;
    n["highest_occupation"] = at.filling.highest;
    n["cells_outside_0_1"] = at.filling.outside;
  }
  if (problem.neutral_inflow) {
    n["inflow_scale_source"] = at.inflow_scale[0];
    n["inflow_scale_drain"] = at.inflow_scale[1];
  }
  const double ballistic =
      ballistic_current(deck, problem, state.energy_ev, finished.present.vds_v) * kCurrentUnit_a_m;
  n["ballistic_a_per_m"] = ballistic;
  n["barrier_height_ev"] =
      barrier_height_ev(problem.structure, state.energy_ev, finished.present.vds_v);
  n["ballistic_ratio"] = ballistic_ratio(n["current_a_per_m"], ballistic);
  add_judged_numbers(deck, problem.structure,
                     {.bias = finished.present,
                      .energy_ev = state.energy_ev,
                      .sheet_nm2 = finished.moments.sheet_nm2,
                      .inflow_scale = std::max({1.0, at.inflow_scale[0], at.inflow_scale[1]})},
                     result);
  const TerminalCharge charge = terminal_charge(problem, state.potential_v);
  n["gate_charge_per_nm"] = charge.gate;
  const Structure& s = problem.structure;
  for (int v = 0; v < s.n_valleys(); ++v)
    n["barrier_top_nu" + std::to_string(v) + "_ev"] =
        barrier_top_ev(
            &state.energy_ev[static_cast<std::size_t>(s.family_of[v]) * s.subbands * s.nx], s.nx) +
        s.valleys[v].offset_ev;
}

}  // namespace

std::vector<double> terminal_currents(const std::vector<double>& terminals) {
  std::vector<double> currents;
  for (std::size_t row = kTerminalWidth; row + kTerminalWidth <= terminals.size();
       row += kTerminalWidth) {
    const double* now = &terminals[row];
    const double* before = now - kTerminalWidth;
    const double span = now[0] - before[0];
    if (span <= 0.0) continue;
    const auto rate = [&](int column) {
      return (now[column] - before[column]) / span * kCurrentUnit_a_m;
    };
    currents.push_back(0.5 * (now[0] + before[0]));
    currents.push_back(rate(1) - rate(4));  // electrons that leave the source carry current into it
    currents.push_back(rate(2) + rate(5));
    currents.push_back(rate(3));
  }
  return currents;
}

PointResult report_point(const Deck& deck, const TransportProblem& problem,
                         const FinishedPoint& finished) {
  const PointProgress& at = finished.progress;
  const PointState& state = finished.state;
  PointResult result;
  result.bias = deck.points[static_cast<std::size_t>(at.point)];
  result.status = finished.status;
  const SteadyWindow& w = at.window;
  std::vector<double> profile(w.profile);
  for (double& value : profile) value *= kCurrentUnit_a_m;
  const auto half_nodes = static_cast<std::int64_t>(profile.size());
  add_numbers(deck, problem, finished, profile, &result);
  result.add("current_x", profile, {half_nodes}, "A/m");
  result.add("steadiness", at.steadiness,
             {std::ssize(at.steadiness) / kSteadinessWidth, kSteadinessWidth}, kSteadinessColumns);
  result.add("history", at.history, {std::ssize(at.history) / kHistoryWidth, kHistoryWidth},
             kHistoryColumns);
  result.add("terminals", at.terminals, {std::ssize(at.terminals) / kTerminalWidth, kTerminalWidth},
             kTerminalColumns);
  const std::vector<double> currents = terminal_currents(at.terminals);
  result.add("terminal_currents", currents,
             {std::ssize(currents) / kTerminalCurrentWidth, kTerminalCurrentWidth},
             kTerminalCurrentColumns);
  add_fields(deck.output, problem, state, finished.moments, &result);
  return result;
}

PdfSnapshot take_snapshot(const PointState& state, double pdf_scale) {
  PdfSnapshot snapshot{.time_fs = state.time_fs, .pdf = {}};
  snapshot.pdf.reserve(state.pdf.size());
  for (const double value : state.pdf)
    snapshot.pdf.push_back(static_cast<float>(value * pdf_scale));
  return snapshot;
}

void write_snapshot(const Deck& deck, const TransportProblem& problem, int point, int number,
                    const PdfSnapshot& snapshot, const std::filesystem::path& directory) {
  const Structure& s = problem.structure;
  H5Writer file(directory /
                ("pdf_" + std::to_string(point) + "_" + std::to_string(number) + ".h5"));
  const std::int64_t shape[] = {s.n_valleys(), s.subbands, s.nx, problem.nw, problem.angles};
  file.write_compressed("/pdf", snapshot.pdf, shape, "nm^-2 eV^-1 rad^-1");
  std::vector<double> w, phi;
  for (int l = 0; l < problem.nw; ++l) w.push_back(problem.grid().w(l));
  for (int m = 0; m < problem.angles; ++m) phi.push_back(m * problem.dphi);
  file.write("/x", s.x_nm, {s.nx}, "nm");
  file.write("/w", w, {problem.nw}, "eV");
  file.write("/phi", phi, {problem.angles}, "rad");
  file.write_scalar("/time", snapshot.time_fs, "fs");
  file.write_scalar("/vgs", deck.points[static_cast<std::size_t>(point)].vgs_v, "V");
  file.write_scalar("/vds", deck.points[static_cast<std::size_t>(point)].vds_v, "V");
  file.commit();
}

}  // namespace quasi::mosfet
