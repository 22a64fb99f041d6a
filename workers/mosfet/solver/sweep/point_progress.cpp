#include "workers/mosfet/solver/sweep/point_progress.hpp"

#include <cmath>

namespace quasi::mosfet {

void add_history(PointProgress* at, const std::vector<StepRecord>& records, double every_fs,
                 double t_end_fs) {
  for (const StepRecord& r : records) {
    if (r.time_fs < at->next_sample_fs && &r != &records.back()) continue;
    if (r.time_fs >= at->next_sample_fs)
      at->next_sample_fs = (std::floor(r.time_fs / every_fs) + 1.0) * every_fs;
    else if (r.time_fs < t_end_fs - 1e-6)
      continue;
    for (const double value :
         {r.time_fs, r.dt_fs, r.current_source * kCurrentUnit_a_m, r.current_mid * kCurrentUnit_a_m,
          r.current_drain * kCurrentUnit_a_m, r.charge_nm, static_cast<double>(r.chord_iterations),
          r.residual, at->top_share, at->min_pdf})
      at->history.push_back(value);
  }
}

void collect_current(PointProgress* at, double time_fs, const std::vector<double>& integral) {
  at->average.add(time_fs, integral);
  // The current at the half nodes next to the contacts counts, because charge on the contact nodes
  // belongs to the terminals.
  at->passed_source += integral[1];
  at->passed_drain += integral[integral.size() - 2];
}

bool close_window(PointProgress* at, double time_fs, const RunSettings& run) {
  const auto now =
      at->average.window({run.steady_tol, run.steady_floor_a_per_m / kCurrentUnit_a_m});
  if (!now) return false;
  const SteadyWindow& w = at->window = *now;
  for (const double value : {time_fs, w.length_fs}) at->steadiness.push_back(value);
  for (const double value : {w.mean, w.spread, w.spread_contacts, w.drift})
    at->steadiness.push_back(value * kCurrentUnit_a_m);
  return run.mode == RunMode::kSteady && w.steady;
}

}  // namespace quasi::mosfet
