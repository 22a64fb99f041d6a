#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/backend/stopwatch.hpp"
#include "workers/mosfet/physics/working_units.hpp"
#include "workers/mosfet/solver/sweep/point_limits.hpp"
#include "workers/mosfet/solver/sweep/point_name.hpp"
#include "workers/mosfet/solver/sweep/point_report.hpp"
#include "workers/mosfet/solver/sweep/point_start.hpp"
#include "workers/mosfet/solver/sweep/sweep_state.hpp"
#include "workers/mosfet/solver/transport/observables.hpp"
#include "workers/mosfet/solver/transport/transport_setup.hpp"
#include "workers/mosfet/solver/verdict/point_verdict.hpp"

namespace quasi::mosfet {
namespace {

constexpr double kCallSeconds = 0.25;  // time between two checks for a cancellation
constexpr double kInstant_fs = 1e-9;   // times closer than this are equal

/// Runs the lanes of one device, which advance together. Each holds one point of a chain.
class DeviceRun {
 public:
  DeviceRun(SweepState* sweep, const Device& device, const std::atomic<bool>& stop)
      : sweep_(*sweep), stop_(stop), deck_(sweep->deck), device_(device), problem_(sweep->problem) {
    use_device(device);
    kernels_ = make_mosfet_kernels(device);
    const int lanes = sweep_.lanes_of(device);
    lanes_.resize(static_cast<std::size_t>(lanes));
    kernels_->load(problem_, lanes);
  }

  void run() {
    for (;;) {
      for (int lane = 0; lane < size(); ++lane) {
        sweep_.progress.throw_if_cancelled();  // the equilibrium of a point takes half a second
        if (!lanes_[lane].active) take_chain(lane);
      }
      if (std::none_of(lanes_.begin(), lanes_.end(), [](const Lane& l) { return l.active; }))
        return;
      batch();
      if (sweep_.ranks.peer_failed()) throw PeerFailed();
      for (int lane = 0; lane < size(); ++lane)
        if (lanes_[lane].active) look(lane);
      maybe_checkpoint();
    }
  }

 private:
  /// One lane, which computes one point of one chain at a time.
  struct Lane {
    bool active = false;
    int chain = -1;
    PointProgress at;  ///< at.state is filled at checkpoints only; the kernels hold the state
    double time_fs = 0, dt_fs = 0;
  };

  int size() const { return static_cast<int>(lanes_.size()); }
  const BiasPoint& bias(const Lane& lane) const {
    return deck_.points[static_cast<std::size_t>(lane.at.point)];
  }

  void take_chain(int lane) {
    std::optional<PointProgress> resumed;
    std::optional<PointState> waiting;
    int position = 0;
    {
      const std::lock_guard lock(sweep_.mutex);
      if (stop_ || sweep_.queue.empty()) return;
      const int chain = sweep_.queue.front();
      sweep_.queue.pop_front();
      lanes_[lane] = Lane{};
      lanes_[lane].chain = chain;
      position = sweep_.next_position_locked(chain);
    }
    Lane& l = lanes_[lane];
    const auto chain = static_cast<std::size_t>(l.chain);
    if (sweep_.resumed_running[chain].data != nullptr)
      resumed = unpack_progress(std::exchange(sweep_.resumed_running[chain], {}));
    if (position > 0 && sweep_.resumed_waiting[chain].data != nullptr)
      waiting = unpack_state(std::exchange(sweep_.resumed_waiting[chain], {}));
    l.active = true;
    if (resumed) {
      l.at = std::move(*resumed);
      l.time_fs = l.at.state.time_fs;
      l.dt_fs = l.at.state.last_dt_fs;
      kernels_->set_boundary(lane, boundary_of(l));
      kernels_->set_state(lane, l.at.state);
      l.at.state = {};
      return;
    }
    start_point(lane, position, waiting ? &*waiting : nullptr);
  }

  PointBoundary boundary_of(const Lane& lane) const {
    return make_point_boundary(deck_, problem_, sweep_.bias_at(lane.at.point, lane.time_fs),
                               sweep_.source, sweep_.drain);
  }

  void start_point(int lane, int position, const PointState* before) {
    Lane& l = lanes_[lane];
    l.at = PointProgress{};
    l.at.average = CurrentAverage(deck_.run.window_fs);
    l.at.point = sweep_.chains[l.chain][static_cast<std::size_t>(position)];
    l.time_fs = l.dt_fs = 0.0;
    const PointBoundary boundary = boundary_of(l);
    kernels_->set_boundary(lane, boundary);
    kernels_->set_state(lane, make_point_start(sweep_, device_, l.at.point, boundary, before));
  }

  // Advances every active lane by at most run.refresh_steps steps between two refreshes. A lane
  // whose chord iteration fails is rolled back and repeats the batch with half the step.
  void batch() {
    std::vector<double> stop(lanes_.size(), -1.0);
    for (int lane = 0; lane < size(); ++lane)
      if (lanes_[lane].active) {
        if (!moves(lanes_[lane])) set_bias_at(lane, lanes_[lane].time_fs);
        kernels_->refresh(lane);
        kernels_->save(lane);
        stop[lane] = next_event(lanes_[lane]);
      }
    struct Clocks {
      double time_fs, dt_fs;
    };
    std::vector<Clocks> clocks;
    for (const Lane& l : lanes_) clocks.push_back({l.time_fs, l.dt_fs});
    std::vector<std::vector<StepRecord>> records(lanes_.size());
    std::vector<int> failed = steps(stop, 1.0, &records);
    for (const int lane : failed) {
      sweep_.log(name_of(bias(lanes_[lane])) + ": chord iteration failed near " +
                 shown(lanes_[lane].time_fs) + " fs; batch repeated with half the step");
      std::vector<double> alone(lanes_.size(), -1.0);
      alone[lane] = stop[lane];
      records[lane].clear();
      kernels_->roll_back(lane);
      lanes_[lane].time_fs = clocks[static_cast<std::size_t>(lane)].time_fs;
      lanes_[lane].dt_fs = clocks[static_cast<std::size_t>(lane)].dt_fs;
      if (!steps(alone, 0.5, &records).empty())
        throw NotConverged(name_of(bias(lanes_[lane])) +
                           ": Schrödinger–Poisson did not converge in 30 chord "
                           "steps near t = " +
                           shown(lanes_[lane].time_fs) +
                           " fs, nor with half the time step; "
                           "residual " +
                           shown(records[lane].empty() ? 0.0 : records[lane].back().residual) +
                           "; lower run.refresh_steps or run.cfl");
    }
    for (int lane = 0; lane < size(); ++lane)
      if (lanes_[lane].active) keep_history(&lanes_[lane], records[lane]);
  }

  // Returns the steps between two refreshes: at most a quarter of an averaging window, by Δt.
  int batch_steps(const Lane& lane) const {
    if (lane.dt_fs <= 0.0) return 1;
    return static_cast<int>(std::clamp(std::ceil(0.25 * deck_.run.window_fs / lane.dt_fs), 1.0,
                                       static_cast<double>(deck_.run.refresh_steps)));
  }

  // Returns the next time that no step may cross: a corner of a waveform, a snapshot or the end.
  double next_event(const Lane& lane) const {
    double event =
        std::min({deck_.run.t_end_fs, deck_.gate_wave.next_corner(lane.time_fs + kInstant_fs),
                  deck_.drain_wave.next_corner(lane.time_fs + kInstant_fs)});
    for (const double t : deck_.output.pdf_at_fs)
      if (t > lane.time_fs + kInstant_fs) return std::min(event, t);
    return event;
  }

  bool moves(const Lane& lane) const {
    return deck_.gate_wave.moves(lane.time_fs + kInstant_fs) ||
           deck_.drain_wave.moves(lane.time_fs + kInstant_fs);
  }

  // A step of a moving bias uses the voltages at its end, which the last time step predicts. When
  // the bias stops moving, batch() sets the voltages themselves.
  void drive(int lane, double stop_fs) {
    const Lane& l = lanes_[lane];
    set_bias_at(lane, std::min(l.time_fs + l.dt_fs, stop_fs));
  }

  void set_bias_at(int lane, double time_fs) {
    if (deck_.gate_wave.t_fs.empty() && deck_.drain_wave.t_fs.empty()) return;
    kernels_->set_fixed_potential(
        lane, potential_boundary(deck_, problem_.structure,
                                 sweep_.bias_at(lanes_[lane].at.point, time_fs), sweep_.source,
                                 sweep_.drain)
                  .value_v);
  }

  std::vector<int> steps(const std::vector<double>& stop, double shrink,
                         std::vector<std::vector<StepRecord>>* records) {
    std::set<int> failed;
    std::vector<double> left = stop;
    std::vector<int> budget;
    for (const Lane& l : lanes_) budget.push_back(batch_steps(l));
    std::vector<Advance> last(lanes_.size());
    for (;;) {
      // Calls are short enough for a cancellation. Their length does not affect the numbers.
      int n = calls_ == 0 ? 1 : std::max(1, static_cast<int>(kCallSeconds / seconds_per_step_));
      bool waiting = true;
      std::vector<double> until(left);
      for (int lane = 0; lane < size(); ++lane) {
        if (budget[lane] == 0) until[lane] = -1.0;  // waits for the other lanes
        if (until[lane] < 0.0 || lanes_[lane].time_fs >= left[lane] - kInstant_fs) continue;
        waiting = false;
        n = std::min(n, budget[lane]);
      }
      if (waiting) break;
      for (int lane = 0; lane < size(); ++lane) {
        if (until[lane] < 0.0 || lanes_[lane].time_fs >= left[lane] - kInstant_fs) continue;
        if (!moves(lanes_[lane])) continue;
        n = 1;
        drive(lane, left[lane]);
      }
      const Stopwatch clock;
      const std::vector<Advance> advanced = kernels_->advance(n, until, shrink);
      seconds_per_step_ = std::max(1e-6, clock.seconds() / n);
      ++calls_;
      for (int lane = 0; lane < size(); ++lane) {
        if (until[lane] < 0.0) continue;
        budget[lane] -= n;
        const Advance& a = advanced[lane];
        auto& kept = (*records)[lane];
        kept.insert(kept.end(), a.steps.begin(), a.steps.end());
        if (a.chord_failed) {
          failed.insert(lane);
          left[lane] = -1.0;
        }
        Lane& l = lanes_[lane];
        if (!kept.empty()) {
          l.time_fs = kept.back().time_fs;
          l.dt_fs = kept.back().dt_fs;
        }
        last[lane] = a;
      }
      tell();
    }
    // Extremes are recorded once a batch, because calls have no fixed length.
    for (int lane = 0; lane < size(); ++lane) {
      if (left[lane] < 0.0) continue;
      PointProgress& at = lanes_[lane].at;
      const Advance& a = last[lane];
      at.min_pdf = std::isnan(a.min_pdf) ? a.min_pdf : std::min(at.min_pdf, a.min_pdf);
      at.top_share = std::max(at.top_share, a.top_share);
      at.filling.lowest = std::min(at.filling.lowest, a.filling.lowest);
      at.filling.highest = std::max(at.filling.highest, a.filling.highest);
      at.filling.outside = a.filling.outside;
      at.inflow_scale = a.inflow_scale;
    }
    return {failed.begin(), failed.end()};
  }

  void tell() {
    const Lane& first =
        *std::find_if(lanes_.begin(), lanes_.end(), [](const Lane& l) { return l.active; });
    std::int64_t finished = 0;
    {
      const std::lock_guard lock(sweep_.mutex);
      finished = static_cast<std::int64_t>(sweep_.finished.size());
    }
    const BiasPoint& bias = deck_.points[static_cast<std::size_t>(first.at.point)];
    sweep_.progress.metric("bias_vgs_v", bias.vgs_v);
    sweep_.progress.metric("bias_vds_v", bias.vds_v);
    sweep_.progress.metric("time_fs", first.time_fs);
    if (!first.at.history.empty()) {
      const double* last = &first.at.history[first.at.history.size() - kHistoryWidth];
      sweep_.progress.metric("current_a_per_m", last[3]);
      sweep_.progress.metric("residual", last[7]);
    }
    if (first.at.window.drift_known)
      sweep_.progress.metric("spread_a_per_m", first.at.window.spread * kCurrentUnit_a_m);
    const auto share =
        static_cast<std::int64_t>(1000.0 * std::min(1.0, first.time_fs / deck_.run.t_end_fs));
    sweep_.progress.report("bias points", 1000 * finished + share,
                           1000 * static_cast<std::int64_t>(deck_.points.size()));
  }

  void keep_history(Lane* lane, const std::vector<StepRecord>& records) const {
    if (!records.empty()) lane->dt_fs = records.back().dt_fs;
    add_history(&lane->at, records, deck_.output.every_fs, deck_.run.t_end_fs);
  }

  // Checks a lane at a refresh boundary: averaging windows, limits and the end of its point.
  void look(int lane) {
    Lane& l = lanes_[lane];
    PointProgress& at = l.at;
    collect_current(&at, l.time_fs, kernels_->take_current_integral(lane));
    const TerminalCharge charge = terminal_charge(problem_, kernels_->potential(lane));
    for (const double value :
         {l.time_fs, charge.source, charge.drain, charge.gate, at.passed_source, at.passed_drain})
      at.terminals.push_back(value);
    check_point(bias(l), at, l.time_fs, deck_.mesh.wmax_ev);
    for (int k = 0; k < static_cast<int>(deck_.output.pdf_at_fs.size()); ++k)
      if (std::fabs(deck_.output.pdf_at_fs[static_cast<std::size_t>(k)] - l.time_fs) <=
              kInstant_fs &&
          !sweep_.options.output_directory.empty()) {
        const PdfSnapshot snapshot = take_snapshot(kernels_->state(lane), boundary_of(l).pdf_scale);
        sweep_.publish({.old = {},
                        .fresh = {{SweepPieces::snapshot(l.at.point, k), pack(snapshot)}},
                        .log = {}});
      }
    if (close_window(&at, l.time_fs, deck_.run)) {
      finish(lane, PointStatus::kConverged);
    } else if (l.time_fs >= deck_.run.t_end_fs - 1e-9) {
      finish(lane, deck_.run.mode == RunMode::kTransient ? PointStatus::kFinished
                                                         : PointStatus::kTimeLimit);
    }
  }

  void finish(int lane, PointStatus status) {
    Lane& l = lanes_[lane];
    const FinishedPoint finished{.progress = l.at,
                                 .present = sweep_.bias_at(l.at.point, l.time_fs),
                                 .dt_fs = l.dt_fs,
                                 .state = kernels_->state(lane),
                                 .moments = kernels_->moments(lane),
                                 .status = status};
    const PointState& state = finished.state;
    PointResult result = report_point(deck_, problem_, finished);
    const PointVerdict verdict = judge_point(deck_.run, result);
    if (status == PointStatus::kConverged && !verdict.resolved)
      status = result.status = PointStatus::kUnresolved;
    for (const std::string& remark : verdict.remarks) sweep_.log(name_of(bias(l)) + ": " + remark);
    for (const std::string& warning : warnings_of(bias(l), l.at)) sweep_.log(warning);
    int position = 0;
    {
      const std::lock_guard lock(sweep_.mutex);
      position = sweep_.next_position_locked(l.chain);
      sweep_.finished[l.at.point] = result;
    }
    const bool more = position + 1 < static_cast<int>(sweep_.chains[l.chain].size());
    SweepNews news{.old = {SweepPieces::running(l.chain), SweepPieces::waiting(l.chain)},
                   .fresh = {{SweepPieces::finished(l.at.point), pack(result)}},
                   .log = end_of_point(l, result, status)};
    if (more && sweep_.keeps_pieces())
      news.fresh.emplace_back(SweepPieces::waiting(l.chain), pack(state));
    sweep_.publish(std::move(news));
    if (sweep_.options.on_state)
      sweep_.options.on_state(l.at.point, state, boundary_of(l).pdf_scale);
    if (more && !stop_)  // after a failure of another device this device only finishes its points
      start_point(lane, position + 1, &state);
    else
      l.active = false;
  }

  /// Formats the log line of a point that has ended.
  std::string end_of_point(const Lane& l, const PointResult& result, PointStatus status) const {
    const auto number = [&](const char* name) { return brief(result.numbers.at(name)); };
    return name_of(bias(l)) + ": I = " + number("current_a_per_m") + " A/m, spread " +
           number("current_spread_a_per_m") + ", drift " +
           (l.at.window.drift_known ? number("current_drift_a_per_m") : "not known") + " A/m, " +
           brief(l.time_fs) + " fs, " +
           (status == PointStatus::kTimeLimit ? "NOT steady at run.t_end_fs" : status_name(status));
  }

  // Publishes the lanes of this device. States are fetched only when a checkpoint is due.
  void maybe_checkpoint() {
    if (!sweep_.is_turn(turn_)) return;
    SweepNews news;
    for (int lane = 0; lane < size(); ++lane) {
      const Lane& l = lanes_[lane];
      // a point that has not stepped need not be saved
      if (!l.active || l.time_fs <= 0.0) continue;
      PointProgress kept = l.at;
      kept.state = kernels_->state(lane);
      news.old.push_back(SweepPieces::waiting(l.chain));
      news.fresh.emplace_back(SweepPieces::running(l.chain), pack(kept));
    }
    sweep_.publish(std::move(news));
    turn_.last = std::chrono::steady_clock::now();
  }

  SweepState& sweep_;
  const std::atomic<bool>& stop_;  ///< another device of this rank has failed
  const Deck& deck_;
  Device device_;
  const TransportProblem& problem_;
  std::unique_ptr<MosfetKernels> kernels_;
  std::vector<Lane> lanes_;
  double seconds_per_step_ = 0;
  std::int64_t calls_ = 0;
  Checkpoint::Turn turn_;
};

}  // namespace

void run_on_device(SweepState* sweep, const Device& device, const std::atomic<bool>& stop) {
  DeviceRun(sweep, device, stop).run();
}

}  // namespace quasi::mosfet
