#include "workers/mosfet/solver/beam/transient/beam_transient_run.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/mosfet/physics/working_units.hpp"
#include "workers/mosfet/solver/beam/beam_report.hpp"
#include "workers/mosfet/solver/beam/transient/beam_transient.hpp"
#include "workers/mosfet/solver/sweep/point_name.hpp"
#include "workers/mosfet/solver/sweep/point_report.hpp"
#include "workers/mosfet/solver/transport/observables.hpp"
#include "workers/mosfet/solver/verdict/point_verdict.hpp"

namespace quasi::mosfet {
namespace {

constexpr double kInstant_fs = 1e-9;  // Times that are closer than this are equal.
// A checkpoint follows after at most this number of steps. The matrices of the field are factorised
// anew there.
constexpr int kBatchSteps = 20;
// Two fields are at most this time × run.cfl apart. With the default run.cfl = 0.7 this is 1.4 fs,
// half of the inverse plasma frequency of contacts with 1e20 cm-3.
constexpr double kFieldOfCfl_fs = 2.0;

// Lists the voltages at t = 0, and all combinations of the extremes of both waveforms.
std::vector<BiasPoint> reached_biases(const SweepState& sweep, int point) {
  std::vector<BiasPoint> reached{sweep.bias_at(point, 0.0)};
  const auto range = [&](const Waveform& wave) {
    std::pair<double, double> ends{wave.at(0.0), wave.at(0.0)};
    for (const double value : wave.value_v)
      ends = {std::min(ends.first, value), std::max(ends.second, value)};
    return ends;
  };
  const auto gate = range(sweep.deck.gate_wave), drain = range(sweep.deck.drain_wave);
  const BiasPoint& fixed = sweep.deck.points[static_cast<std::size_t>(point)];
  for (const double vgs_v : {gate.first, gate.second})
    for (const double vds_v : {drain.first, drain.second}) {
      const BiasPoint bias{fixed.vgs_v + vgs_v, fixed.vds_v + vds_v};
      const bool known = std::any_of(reached.begin(), reached.end(), [&](const BiasPoint& other) {
        return other.vgs_v == bias.vgs_v && other.vds_v == bias.vds_v;
      });
      if (!known) reached.push_back(bias);
    }
  return reached;
}

/// Runs the transient of one bias point, and makes its tables and checkpoints.
class TransientRun {
 public:
  TransientRun(int chain, const BeamDevice& device, SweepState& sweep)
      : chain_(chain),
        point_(sweep.chains[static_cast<std::size_t>(chain)].front()),
        device_(device),
        sweep_(sweep),
        deck_(sweep.deck),
        grid_(make_transient_grid(device, reached_biases(sweep, point_))),
        transient_(
            device, [this](double t_fs) { return sweep_.bias_at(point_, t_fs); },
            {.step_fs = kFieldOfCfl_fs * deck_.run.cfl, .cfl = deck_.run.cfl}, grid_) {
    at_.point = point_;
  }

  /// Begins at t = 0, or at the time of the checkpoint if there is one.
  void begin(BeamKernels& kernels) {
    Piece& kept = sweep_.resumed_running[static_cast<std::size_t>(chain_)];
    if (kept.data != nullptr) {
      at_ = unpack_progress(std::exchange(kept, {}));
      transient_.restore(at_.state);
      at_.state = {};
      return;
    }
    transient_.start(kernels, sweep_.progress);
    add_terminals();
  }

  bool has_ended() const { return transient_.time_fs() >= deck_.run.t_end_fs - kInstant_fs; }

  /// Takes the steps up to the next checkpoint.
  void batch() {
    transient_.begin_batch();
    const int steps = std::min(deck_.run.refresh_steps, kBatchSteps);
    for (int step = 0; step < steps && !has_ended(); ++step) {
      const BeamTransientStep done = transient_.step(transient_.step_until(next_event()));
      if (!std::isfinite(done.record.charge_nm))
        throw NotConverged(name_of(bias()) + ": the solution became infinite or undefined at t = " +
                           shown(transient_.time_fs()) + " fs; lower run.cfl");
      at_.min_pdf = std::min(at_.min_pdf, done.least);
      at_.passed_source += done.passed[1];
      at_.passed_drain += done.passed[done.passed.size() - 2];
      const std::size_t rows = at_.history.size();
      add_history(&at_, {done.record}, deck_.output.every_fs, deck_.run.t_end_fs);
      if (at_.history.size() > rows) add_terminals();
      tell(done.record);
    }
  }

  void keep(Checkpoint::Turn* turn) {
    if (has_ended() || !sweep_.is_turn(*turn)) return;
    PointProgress kept = at_;
    kept.state = transient_.state();
    sweep_.publish({.old = {}, .fresh = {{SweepPieces::running(chain_), pack(kept)}}, .log = {}});
    turn->last = std::chrono::steady_clock::now();
  }

  void finish() {
    const BeamSteadyState state = transient_.present();
    PointResult result = report_beam_point(deck_, device_, bias(), state);
    result.bias = deck_.points[static_cast<std::size_t>(point_)];
    result.status = PointStatus::kFinished;
    auto& n = result.numbers;
    const PointState last = transient_.state();
    n["time_fs"] = last.time_fs;
    n["dt_fs"] = last.last_dt_fs;
    n["steps"] = static_cast<double>(last.step);
    n["min_pdf"] = at_.min_pdf;
    n.erase("line_solves");
    result.add("history", at_.history, {std::ssize(at_.history) / kHistoryWidth, kHistoryWidth},
               kHistoryColumns);
    result.add("terminals", at_.terminals,
               {std::ssize(at_.terminals) / kTerminalWidth, kTerminalWidth}, kTerminalColumns);
    const std::vector<double> currents = terminal_currents(at_.terminals);
    result.add("terminal_currents", currents,
               {std::ssize(currents) / kTerminalCurrentWidth, kTerminalCurrentWidth},
               kTerminalCurrentColumns);
    for (const std::string& remark : judge_point(deck_.run, result).remarks)
      sweep_.log(name_of(bias()) + ": " + remark);
    sweep_.publish({.old = {SweepPieces::running(chain_)},
                    .fresh = {{SweepPieces::finished(point_), pack(result)}},
                    .log = name_of(bias()) + ": I = " + brief(n.at("current_a_per_m")) +
                           " A/m at t = " + brief(last.time_fs) + " fs, finished"});
  }

 private:
  BiasPoint bias() const { return sweep_.bias_at(point_, transient_.time_fs()); }

  // Returns the next time that no step may cross: a corner of a waveform or the end.
  double next_event() const {
    const double after_fs = transient_.time_fs() + kInstant_fs;
    return std::min({deck_.run.t_end_fs, deck_.gate_wave.next_corner(after_fs),
                     deck_.drain_wave.next_corner(after_fs)});
  }

  void add_terminals() {
    const TerminalCharge charge =
        terminal_charge(device_.problem, transient_.field_now().potential_v);
    for (const double value : {transient_.time_fs(), charge.source, charge.drain, charge.gate,
                               at_.passed_source, at_.passed_drain})
      at_.terminals.push_back(value);
  }

  void tell(const StepRecord& record) {
    std::int64_t finished = 0;
    {
      const std::lock_guard lock(sweep_.mutex);
      finished = std::ssize(sweep_.finished);
    }
    sweep_.progress.metric("bias_vgs_v", bias().vgs_v);
    sweep_.progress.metric("bias_vds_v", bias().vds_v);
    sweep_.progress.metric("time_fs", record.time_fs);
    sweep_.progress.metric("current_a_per_m", record.current_mid * kCurrentUnit_a_m);
    const double share = std::min(1.0, record.time_fs / deck_.run.t_end_fs);
    sweep_.progress.report("bias points", 1000 * finished + static_cast<std::int64_t>(1000 * share),
                           1000 * std::ssize(deck_.points));
  }

  int chain_, point_;
  const BeamDevice& device_;
  SweepState& sweep_;
  const Deck& deck_;
  BeamGrid grid_;
  BeamTransient transient_;
  PointProgress at_;
};

}  // namespace

void run_beam_transient(int chain, const BeamDevice& device, BeamKernels& kernels,
                        const std::atomic<bool>& stop, SweepState& sweep) {
  TransientRun run(chain, device, sweep);
  run.begin(kernels);
  Checkpoint::Turn turn;
  while (!run.has_ended() && !stop) {
    run.batch();
    if (sweep.ranks.peer_failed()) throw PeerFailed();
    run.keep(&turn);
  }
  if (run.has_ended()) run.finish();
}

}  // namespace quasi::mosfet
