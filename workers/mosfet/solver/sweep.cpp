#include "workers/mosfet/solver/sweep.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "workers/backend/error.hpp"
#include "workers/mosfet/input/make_structure.hpp"
#include "workers/mosfet/input/table_reader.hpp"
#include "workers/mosfet/kernels/subbands.hpp"
#include "workers/mosfet/physics/working_units.hpp"
#include "workers/mosfet/solver/checkpoint.hpp"
#include "workers/mosfet/solver/observables.hpp"
#include "workers/mosfet/solver/transport_setup.hpp"

namespace quasi::mosfet {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kTopWarning = 1e-3, kTopError = 1e-2, kUndershootWarning = -2e-3;
constexpr double kZeroCurrent_a_m = 1e-3;  // Absolute floor of the steadiness tests.
constexpr double kCallSeconds = 0.25;      // Between looks at a cancellation.

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string name_of(const BiasPoint& bias) {
  return "V_GS = " + shown(bias.vgs_v) + " V, V_DS = " + shown(bias.vds_v) + " V";
}

/// What all devices of a sweep share.
class Sweep {
 public:
  Sweep(const Deck& deck, const SweepOptions& options, Progress& progress)
      : deck_(deck), options_(options), progress_(progress), structure_(make_structure(deck)),
        problem_(make_transport_problem(deck, structure_)),
        source_(solve_contact(deck, structure_, 0)),
        drain_(solve_contact(deck, structure_, structure_.nx - 1)), key_(resume_key(deck)) {
    make_chains();
    if (!options_.checkpoint_directory.empty())
      if (auto found = read_checkpoint(checkpoint_path(), key_)) {
        snapshot_ = std::move(*found);
        progress_.log("resumed: " + std::to_string(snapshot_.finished.size()) + " of " +
                      std::to_string(deck_.points.size()) + " points finished");
      }
    for (int chain = 0; chain < static_cast<int>(chains_.size()); ++chain)
      if (next_position(chain) < static_cast<int>(chains_[chain].size())) queue_.push_back(chain);
  }

  std::vector<PointResult> run();

 private:
  friend class DeviceRun;

  // Steady points of equal V_GS follow each other; every transient point stands alone.
  void make_chains() {
    if (deck_.run.mode == RunMode::kTransient) {
      for (int k = 0; k < static_cast<int>(deck_.points.size()); ++k) chains_.push_back({k});
      return;
    }
    std::map<double, std::vector<int>> by_gate;
    for (int k = 0; k < static_cast<int>(deck_.points.size()); ++k) by_gate[deck_.points[k].vgs_v].push_back(k);
    for (auto& [vgs, chain] : by_gate) {
      std::stable_sort(chain.begin(), chain.end(), [&](int a, int b) {
        return std::fabs(deck_.points[a].vds_v) < std::fabs(deck_.points[b].vds_v);
      });
      chains_.push_back(chain);
    }
  }

  int next_position(int chain) const {
    int position = 0;
    while (position < static_cast<int>(chains_[chain].size()) &&
           snapshot_.finished.contains(chains_[chain][position]))
      ++position;
    return position;
  }

  std::filesystem::path checkpoint_path() const { return options_.checkpoint_directory / "mosfet.ckpt.h5"; }

  void save_checkpoint_locked() {
    if (options_.checkpoint_directory.empty()) return;
    write_checkpoint(checkpoint_path(), key_, snapshot_);
    last_checkpoint_ = Clock::now();
    progress_.checkpoint_ready(checkpoint_path().string(), static_cast<std::int64_t>(++checkpoints_));
  }

  const Deck& deck_;
  const SweepOptions& options_;
  Progress& progress_;
  Structure structure_;
  TransportProblem problem_;
  Equilibrium source_, drain_;
  std::string key_;
  std::vector<std::vector<int>> chains_;

  std::mutex mutex_;
  std::deque<int> queue_;      ///< chains that nobody runs yet
  SweepSnapshot snapshot_;
  std::exception_ptr failure_;
  Clock::time_point last_checkpoint_ = Clock::now();
  std::int64_t checkpoints_ = 0;
};

/// One device's lanes: each holds a chain's current point, all advance together.
class DeviceRun {
 public:
  DeviceRun(Sweep* sweep, const Device& device)
      : sweep_(*sweep), deck_(sweep->deck_), device_(device), problem_(sweep->problem_) {
    use_device(device);
    kernels_ = make_mosfet_kernels(device);
    int lanes = sweep_.options_.lanes;
    if (lanes == 0) lanes = device.backend == Backend::kCuda ? 4 : 1;
    lanes = std::min(lanes, static_cast<int>(sweep_.chains_.size()));
    lanes_.resize(static_cast<std::size_t>(lanes));
    kernels_->load(problem_, lanes);
  }

  void run() {
    for (;;) {
      for (int lane = 0; lane < size(); ++lane)
        if (!lanes_[lane].active) take_chain(lane);
      if (std::none_of(lanes_.begin(), lanes_.end(), [](const Lane& l) { return l.active; })) return;
      batch();
      for (int lane = 0; lane < size(); ++lane)
        if (lanes_[lane].active) look(lane);
      maybe_checkpoint();
    }
  }

 private:
  struct Lane {
    bool active = false;
    int chain = -1;
    PointProgress at;  ///< at.state is filled at checkpoints only; the kernels hold the truth
    double time_fs = 0;
    double dt_fs = 0;
  };

  int size() const { return static_cast<int>(lanes_.size()); }
  const BiasPoint& bias(const Lane& lane) const { return deck_.points[static_cast<std::size_t>(lane.at.point)]; }

  void take_chain(int lane) {
    std::optional<PointProgress> resumed;
    {
      const std::lock_guard lock(sweep_.mutex_);
      if (sweep_.queue_.empty()) return;
      lanes_[lane] = Lane{};
      lanes_[lane].chain = sweep_.queue_.front();
      sweep_.queue_.pop_front();
      const auto found = sweep_.snapshot_.running.find(lanes_[lane].chain);
      if (found != sweep_.snapshot_.running.end()) resumed = found->second;
    }
    Lane& l = lanes_[lane];
    l.active = true;
    if (resumed) {
      l.at = std::move(*resumed);
      l.time_fs = l.at.state.time_fs;
      kernels_->set_boundary(lane, boundary_of(l));
      kernels_->set_state(lane, l.at.state);
      l.at.state = {};
      return;
    }
    const int position = sweep_.next_position(l.chain);
    if (position > 0) {
      const std::lock_guard lock(sweep_.mutex_);
      const auto waiting = sweep_.snapshot_.chain_state.find(l.chain);
      if (waiting != sweep_.snapshot_.chain_state.end()) {
        start_point(lane, position, &waiting->second);
        return;
      }
    }
    start_point(lane, position, nullptr);
  }

  PointBoundary boundary_of(const Lane& lane) const {
    return make_point_boundary(deck_, problem_, bias(lane), sweep_.source_, sweep_.drain_);
  }

  // From the predecessor's end if there is one, else from the quasi-equilibrium of the bias.
  void start_point(int lane, int position, const PointState* before) {
    Lane& l = lanes_[lane];
    l.at = PointProgress{};
    l.at.point = sweep_.chains_[l.chain][static_cast<std::size_t>(position)];
    l.time_fs = 0.0;
    const PointBoundary boundary = boundary_of(l);
    kernels_->set_boundary(lane, boundary);
    if (before == nullptr) {
      const Equilibrium start = solve_equilibrium(deck_, problem_.structure, bias(l), sweep_.source_, sweep_.drain_);
      kernels_->set_state(lane, make_start(deck_, problem_, bias(l), boundary, start));
      return;
    }
    PointState next;
    next.pdf = before->pdf;
    next.potential_v = shifted_potential(before->potential_v, boundary);
    Subbands levels = solve_subbands(problem_.structure, next.potential_v);
    next.energy_ev = std::move(levels.energy_ev);
    next.psi = std::move(levels.psi);
    kernels_->set_state(lane, next);
  }

  // V plus the solution of Laplace's equation for the change of the given potentials.
  std::vector<double> shifted_potential(const std::vector<double>& before, const PointBoundary& boundary) const {
    const Structure& s = problem_.structure;
    std::vector<double> change(before.size(), 0.0);
    for (std::size_t k = 0; k < before.size(); ++k)
      if (problem_.fixed[k]) change[k] = boundary.fixed_v[k] - before[k];
    const PotentialBoundary edges{problem_.fixed, change};
    std::vector<double> step = poisson_residual(s, edges, change, s.doping_nm3);
    ColumnMatrix laplace(s, edges, std::vector<double>(static_cast<std::size_t>(s.nx) * s.nz * s.nz, 0.0));
    laplace.factorise();
    laplace.solve(step.data());
    std::vector<double> after(before);
    for (std::size_t k = 0; k < before.size(); ++k) after[k] += change[k] - step[k];
    return after;
  }

  // run.refresh_steps steps of every active lane, between two refreshes; a lane whose chord iteration
  // fails is taken back and repeats the batch with half the step.
  void batch() {
    std::vector<double> stop(lanes_.size(), -1.0);
    for (int lane = 0; lane < size(); ++lane)
      if (lanes_[lane].active) {
        kernels_->refresh(lane);
        kernels_->save(lane);
        stop[lane] = deck_.run.t_end_fs;
      }
    std::vector<std::vector<StepRecord>> records(lanes_.size());
    std::vector<int> failed = steps(stop, 1.0, &records);
    for (const int lane : failed) {
      sweep_.progress_.log(name_of(bias(lanes_[lane])) + ": chord iteration failed near " +
                           shown(lanes_[lane].time_fs) + " fs; batch repeated with half the step");
      std::vector<double> alone(lanes_.size(), -1.0);
      alone[lane] = stop[lane];
      records[lane].clear();
      kernels_->roll_back(lane);
      if (!steps(alone, 0.5, &records).empty())
        throw NotConverged(name_of(bias(lanes_[lane])) + ": Schrödinger–Poisson did not converge in 30 chord "
                           "steps near t = " + shown(lanes_[lane].time_fs) + " fs, nor with half the time step; "
                           "residual " + shown(records[lane].empty() ? 0.0 : records[lane].back().residual) +
                           "; lower run.refresh_steps or run.cfl");
    }
    for (int lane = 0; lane < size(); ++lane)
      if (lanes_[lane].active) sample(&lanes_[lane], records[lane]);
  }

  std::vector<int> steps(const std::vector<double>& stop, double shrink,
                         std::vector<std::vector<StepRecord>>* records) {
    std::set<int> failed;
    std::vector<double> left = stop;
    for (int done = 0; done < deck_.run.refresh_steps;) {
      // Calls are short enough for a cancellation; their length does not enter the numbers.
      const int n = std::clamp(calls_ == 0 ? 1 : static_cast<int>(kCallSeconds / seconds_per_step_), 1,
                               deck_.run.refresh_steps - done);
      const auto start = Clock::now();
      const std::vector<Advance> advanced = kernels_->advance(n, left, shrink);
      seconds_per_step_ = std::max(1e-6, seconds_since(start) / n);
      ++calls_;
      done += n;
      for (int lane = 0; lane < size(); ++lane) {
        if (left[lane] < 0.0) continue;
        const Advance& a = advanced[lane];
        auto& kept = (*records)[lane];
        kept.insert(kept.end(), a.steps.begin(), a.steps.end());
        if (a.chord_failed) {
          failed.insert(lane);
          left[lane] = -1.0;
        }
        Lane& l = lanes_[lane];
        if (!kept.empty()) l.time_fs = kept.back().time_fs;
        if (done == deck_.run.refresh_steps) {  // Not in between: calls have no fixed length.
          l.at.min_pdf = std::isnan(a.min_pdf) ? a.min_pdf : std::min(l.at.min_pdf, a.min_pdf);
          l.at.top_share = std::max(l.at.top_share, a.top_share);
        }
      }
      tell();
    }
    return {failed.begin(), failed.end()};
  }

  void tell() {
    const Lane& first = *std::find_if(lanes_.begin(), lanes_.end(), [](const Lane& l) { return l.active; });
    std::int64_t finished = 0;
    {
      const std::lock_guard lock(sweep_.mutex_);
      finished = static_cast<std::int64_t>(sweep_.snapshot_.finished.size());
    }
    sweep_.progress_.metric("point", first.at.point);
    sweep_.progress_.metric("time_fs", first.time_fs);
    if (!first.at.history.empty())
      sweep_.progress_.metric("current_a_per_m", first.at.history[first.at.history.size() - kHistoryWidth + 3]);
    if (first.at.window.closed > 1) sweep_.progress_.metric("spread_a_per_m", first.at.window.spread * kCurrentUnit_a_m);
    const auto share = static_cast<std::int64_t>(1000.0 * std::min(1.0, first.time_fs / deck_.run.t_end_fs));
    sweep_.progress_.report("bias points", 1000 * finished + share,
                            1000 * static_cast<std::int64_t>(deck_.points.size()));
  }

  void sample(Lane* lane, const std::vector<StepRecord>& records) {
    PointProgress& at = lane->at;
    for (const StepRecord& r : records) {
      lane->dt_fs = r.dt_fs;
      if (r.time_fs < at.next_sample_fs && &r != &records.back()) continue;
      if (r.time_fs >= at.next_sample_fs)
        at.next_sample_fs = (std::floor(r.time_fs / deck_.output.every_fs) + 1.0) * deck_.output.every_fs;
      else if (r.time_fs < deck_.run.t_end_fs - 1e-6)
        continue;
      for (const double value :
           {r.time_fs, r.dt_fs, r.current_source * kCurrentUnit_a_m, r.current_mid * kCurrentUnit_a_m,
            r.current_drain * kCurrentUnit_a_m, r.charge_nm, static_cast<double>(r.chord_iterations), r.residual,
            at.top_share, at.min_pdf})
        at.history.push_back(value);
    }
  }

  // At a refresh boundary: windows, limits, the end of a point.
  void look(int lane) {
    Lane& l = lanes_[lane];
    PointProgress& at = l.at;
    const TerminalCharge charge = terminal_charge(problem_, kernels_->potential(lane));
    for (const double value : {l.time_fs, charge.source, charge.drain, charge.gate}) at.terminals.push_back(value);
    if (!(std::isfinite(at.min_pdf) && std::isfinite(charge.source)))
      throw NotConverged(name_of(bias(l)) + ": the solution left the finite numbers at t = " + shown(l.time_fs) +
                         " fs; lower run.cfl");
    if (at.top_share >= kTopError)
      throw InvalidInput(name_of(bias(l)) + ": the highest energy cell holds " + shown(at.top_share) +
                         " of the largest occupation (limit 1e-2); raise mesh.wmax_eV above " +
                         shown(deck_.mesh.wmax_ev) + " and mesh.nw with it");
    if (close_window(lane)) {
      finish(lane, "converged");
    } else if (l.time_fs >= deck_.run.t_end_fs - 1e-9) {
      finish(lane, deck_.run.mode == RunMode::kTransient ? "finished" : "time_limit");
    }
  }

  bool close_window(int lane) {
    Lane& l = lanes_[lane];
    SteadyWindow& w = l.at.window;
    const bool ends = l.time_fs >= deck_.run.t_end_fs - 1e-9;
    const double span = l.time_fs - w.opened_fs;
    if (span < deck_.run.window_fs && !(ends && (w.closed == 0 || span > 0.2 * deck_.run.window_fs))) return false;
    w.profile = kernels_->take_current_integral(lane);
    double low = INFINITY, high = -INFINITY, sum = 0.0;
    for (double& value : w.profile) {
      value /= span;
      low = std::min(low, value);
      high = std::max(high, value);
      sum += value;
    }
    const double mean = sum / static_cast<double>(w.profile.size());
    w.drift = w.closed > 0 ? std::fabs(mean - w.mean) : 0.0;
    w.mean = mean;
    w.spread = high - low;
    w.opened_fs = l.time_fs;
    ++w.closed;
    const double limit = std::max(deck_.run.steady_tol * std::fabs(mean), kZeroCurrent_a_m / kCurrentUnit_a_m);
    return deck_.run.mode == RunMode::kSteady && w.closed > 1 && w.spread < limit && w.drift < limit;
  }

  void finish(int lane, const std::string& status) {
    Lane& l = lanes_[lane];
    const PointState state = kernels_->state(lane);
    const Moments moments = kernels_->moments(lane);
    PointResult result = make_result(l, state, moments, status);
    const int position = sweep_.next_position(l.chain);
    bool more = false;
    {
      const std::lock_guard lock(sweep_.mutex_);
      sweep_.snapshot_.finished[l.at.point] = result;
      sweep_.snapshot_.running.erase(l.chain);
      more = position + 1 < static_cast<int>(sweep_.chains_[l.chain].size());
      if (more) sweep_.snapshot_.chain_state[l.chain] = state;
      else sweep_.snapshot_.chain_state.erase(l.chain);
      sweep_.save_checkpoint_locked();
      if (sweep_.options_.on_finished) sweep_.options_.on_finished(l.at.point, result);
    }
    sweep_.progress_.log(name_of(bias(l)) + ": I = " + shown(result.numbers["current_a_per_m"]) + " A/m, spread " +
                         shown(result.numbers["current_spread"]) + ", " + shown(l.time_fs) + " fs, " + status);
    if (more)
      start_point(lane, position + 1, &state);
    else
      l.active = false;
  }

  PointResult make_result(const Lane& l, const PointState& state, const Moments& moments,
                          const std::string& status) const {
    PointResult result;
    result.bias = bias(l);
    result.status = status;
    const SteadyWindow& w = l.at.window;
    std::vector<double> profile(w.profile);
    for (double& value : profile) value *= kCurrentUnit_a_m;
    const auto half_nodes = static_cast<std::int64_t>(profile.size());
    auto& n = result.numbers;
    n["current_a_per_m"] = profile[profile.size() / 2];
    n["current_mean_a_per_m"] = w.mean * kCurrentUnit_a_m;
    n["current_source_a_per_m"] = profile.front();
    n["current_drain_a_per_m"] = profile.back();
    n["current_spread"] = w.spread * kCurrentUnit_a_m;
    n["current_drift"] = w.drift * kCurrentUnit_a_m;
    n["steps"] = static_cast<double>(state.step);
    n["time_fs"] = l.time_fs;
    n["dt_fs"] = l.dt_fs;
    n["min_pdf"] = l.at.min_pdf;
    n["top_share"] = l.at.top_share;
    const double ballistic = ballistic_current(deck_, problem_, state.energy_ev, result.bias.vds_v) * kCurrentUnit_a_m;
    n["ballistic_a_per_m"] = ballistic;
    n["ballistic_ratio"] = std::fabs(ballistic) > kZeroCurrent_a_m ? n["current_a_per_m"] / ballistic : 0.0;
    const TerminalCharge charge = terminal_charge(problem_, state.potential_v);
    n["gate_charge_per_nm"] = charge.gate;
    const Structure& s = problem_.structure;
    for (int v = 0; v < s.n_valleys(); ++v)
      n["barrier_top_nu" + std::to_string(v) + "_ev"] =
          barrier_top_ev(&state.energy_ev[static_cast<std::size_t>(s.family_of[v]) * s.subbands * s.nx], s.nx) +
          s.valleys[v].offset_ev;
    result.add("current_x", profile, {half_nodes}, "A/m");
    result.add("history", l.at.history, {std::ssize(l.at.history) / kHistoryWidth, kHistoryWidth}, kHistoryColumns);
    result.add("terminals", l.at.terminals, {std::ssize(l.at.terminals) / kTerminalWidth, kTerminalWidth},
               kTerminalColumns);
    add_fields(deck_, problem_, state, moments, &result);
    if (l.at.top_share >= kTopWarning)
      sweep_.progress_.log(name_of(result.bias) + ": the highest energy cell holds " + shown(l.at.top_share) +
                           " of the largest occupation; consider a higher mesh.wmax_eV");
    if (l.at.min_pdf < kUndershootWarning)
      sweep_.progress_.log(name_of(result.bias) + ": the pdf undershoots to " + shown(l.at.min_pdf) +
                           " of its maximum; refine the mesh");
    return result;
  }

  // Each device keeps its own lanes' part of the snapshot; states are fetched only when one is due.
  void maybe_checkpoint() {
    const std::lock_guard lock(sweep_.mutex_);
    if (sweep_.options_.checkpoint_directory.empty()) return;
    const bool wanted = sweep_.progress_.checkpoint_wanted();
    if (!wanted && seconds_since(sweep_.last_checkpoint_) < deck_.run.checkpoint_s) return;
    for (int lane = 0; lane < size(); ++lane) {
      if (!lanes_[lane].active || kernels_steps(lane) == 0) continue;
      PointProgress kept = lanes_[lane].at;
      kept.state = kernels_->state(lane);
      sweep_.snapshot_.chain_state.erase(lanes_[lane].chain);
      sweep_.snapshot_.running[lanes_[lane].chain] = std::move(kept);
    }
    sweep_.save_checkpoint_locked();
  }
  std::int64_t kernels_steps(int lane) const { return lanes_[lane].time_fs > 0.0; }

  Sweep& sweep_;
  const Deck& deck_;
  Device device_;
  const TransportProblem& problem_;
  std::unique_ptr<MosfetKernels> kernels_;
  std::vector<Lane> lanes_;
  double seconds_per_step_ = 0;
  std::int64_t calls_ = 0;
};

std::vector<PointResult> Sweep::run() {
  const auto on_device = [this](const Device& device) {
    try {
      DeviceRun(this, device).run();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      queue_.clear();  // The other devices end with the points they hold.
    }
  };
  if (options_.devices.size() == 1) {
    on_device(options_.devices.front());
  } else {
    std::vector<std::jthread> threads;
    for (const Device& device : options_.devices) threads.emplace_back(on_device, device);
  }
  if (failure_) std::rethrow_exception(failure_);
  std::vector<PointResult> results;
  for (int k = 0; k < static_cast<int>(deck_.points.size()); ++k) results.push_back(snapshot_.finished.at(k));
  return results;
}

}  // namespace

std::vector<PointResult> run_sweep(const Deck& deck, const SweepOptions& options, Progress& progress) {
  Sweep sweep(deck, options, progress);
  return sweep.run();
}

}  // namespace quasi::mosfet
