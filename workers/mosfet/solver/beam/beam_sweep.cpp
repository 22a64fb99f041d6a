#include "workers/mosfet/solver/beam/beam_sweep.hpp"

#include <omp.h>

#include <algorithm>
#include <optional>

#include "workers/backend/device/memory_budget.hpp"
#include "workers/backend/error.hpp"
#include "workers/backend/team/every_device.hpp"
#include "workers/mosfet/solver/beam/beam_report.hpp"
#include "workers/mosfet/solver/beam/small_signal/small_signal_report.hpp"
#include "workers/mosfet/solver/beam/stored_start.hpp"
#include "workers/mosfet/solver/beam/transient/beam_transient_run.hpp"
#include "workers/mosfet/solver/sweep/point_name.hpp"
#include "workers/mosfet/solver/verdict/point_verdict.hpp"

namespace quasi::mosfet {
namespace {

// Takes the next chain of this rank from the queue.
std::optional<int> next_chain(SweepState& sweep) {
  const std::lock_guard lock(sweep.mutex);
  if (sweep.queue.empty()) return {};
  const int chain = sweep.queue.front();
  sweep.queue.pop_front();
  return chain;
}

// Solves a point from its stored state on another mesh, or from the guess of its predecessors. If
// that fails, the quasi-equilibrium of the bias is tried, and then a way through lower V_DS.
BeamSteadyState solve_from(const std::vector<BeamStart>& before, const BeamDevice& device,
                           const BiasPoint& bias, BeamKernels& kernels, SweepState& sweep) {
  std::optional<BeamStart> start =
      stored_start(sweep.deck.stored_points, bias, device.model, device.structure);
  if (!start) start = predicted_start(before, bias);
  if (start) {
    try {
      return solve_beam_point(device, bias, kernels, sweep.progress, &*start);
    } catch (const NotConverged& failure) {
      sweep.log(std::string(failure.what()) + "; from the quasi-equilibrium again");
    }
  }
  try {
    return solve_beam_point(device, bias, kernels, sweep.progress);
  } catch (const NotConverged& failure) {
    if (bias.vds_v == 0.0) throw;
    sweep.log(std::string(failure.what()) + "; through points at lower V_DS again");
  }
  return solve_through_lower_bias(device, bias, kernels, sweep.progress);
}

// Solves the points of a chain that an earlier attempt has left.
void run_chain(int chain, const BeamDevice& device, const Device& processor, BeamKernels& kernels,
               const std::atomic<bool>& stop, SweepState& sweep) {
  const Deck& deck = sweep.deck;
  const std::vector<int>& points = sweep.chains[static_cast<std::size_t>(chain)];
  std::vector<BeamStart> before =
      unpack_starts(sweep.resumed_waiting[static_cast<std::size_t>(chain)]);
  std::size_t position = 0;
  {
    const std::lock_guard lock(sweep.mutex);
    position = static_cast<std::size_t>(sweep.next_position_locked(chain));
  }
  for (; position < points.size() && !stop; ++position) {
    {
      const std::lock_guard lock(sweep.mutex);
      sweep.progress.report("bias points", std::ssize(sweep.finished), std::ssize(deck.points));
    }
    if (sweep.ranks.peer_failed()) throw PeerFailed();
    const int point = points[position];
    const BiasPoint& bias = deck.points[static_cast<std::size_t>(point)];
    BeamSteadyState state = solve_from(before, device, bias, kernels, sweep);
    PointResult result = report_beam_point(deck, device, bias, state);
    add_small_signal(deck.small_signal, device, processor, state, sweep.progress, &result);
    for (const std::string& remark : judge_point(deck.run, result).remarks)
      sweep.log(name_of(bias) + ": " + remark);
    before.push_back(std::move(state.passed_on));
    if (before.size() > 2) before.erase(before.begin());
    SweepNews news{.old = {SweepPieces::waiting(chain)},
                   .fresh = {{SweepPieces::finished(point), pack(result)}},
                   .log = log_of_beam_point(result, state)};
    if (sweep.keeps_pieces() && position + 1 < points.size())
      news.fresh.emplace_back(SweepPieces::waiting(chain), pack(before));
    sweep.publish(std::move(news));
  }
}

}  // namespace

std::size_t beam_points_at_once(const SweepState& sweep) {
  const Deck& deck = sweep.deck;
  const std::vector<Device>& devices = sweep.options.devices;
  std::size_t points = 1;
  // Every point keeps two threads of the host busy with Schrödinger and Poisson.
  if (devices.front().backend == Backend::kCuda)
    points = static_cast<std::size_t>(omp_get_max_threads()) / (2 * devices.size());
  points = std::clamp<std::size_t>(
      points, 1,
      std::max<std::size_t>(1, (sweep.queue.size() + devices.size() - 1) / devices.size()));
  if (sweep.options.memory_budget_bytes <= 0) return points;
  const auto bytes = static_cast<std::int64_t>(beam_point_bytes(deck, sweep.structure));
  return std::min(points, static_cast<std::size_t>(items_that_fit(sweep.options.memory_budget_bytes,
                                                                  0, bytes, "a bias point")));
}

void run_beam_on_device(SweepState* sweep, const Device& device, std::size_t n_beside,
                        const std::atomic<bool>& stop) {
  const Deck& deck = sweep->deck;
  const HostThreadShare share(n_beside);
  use_device(device);
  const ElasticTables elastic(deck, sweep->structure);
  const bool is_transient = deck.run.mode == RunMode::kTransient;
  const bool needs_host = device.backend == Backend::kCuda && is_transient;
  if (needs_host)
    sweep->log("transients of the beam scheme run on the CPU, not on " + device.name());
  const Device processor = needs_host ? find_device("cpu") : device;
  const std::unique_ptr<BeamKernels> kernels = make_beam_kernels(processor);
  const BeamDevice shared{.model = deck,
                          .structure = sweep->structure,
                          .problem = sweep->problem,
                          .elastic = elastic,
                          .contacts = {sweep->source, sweep->drain},
                          .mesh = {.dh_ev = deck.mesh.dh_ev,
                                   .n_kappa = deck.mesh.n_kappa,
                                   .window_ev = deck.mesh.window_ev},
                          .tolerance_v = deck.run.tol_v};
  while (!stop) {
    const std::optional<int> chain = next_chain(*sweep);
    if (!chain) return;
    if (is_transient)
      run_beam_transient(*chain, shared, *kernels, stop, *sweep);
    else
      run_chain(*chain, shared, processor, *kernels, stop, *sweep);
  }
}

}  // namespace quasi::mosfet
