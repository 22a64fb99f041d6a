#include "workers/mosfet/solver/sweep/sweep.hpp"

#include <atomic>

#include "workers/backend/team/every_device.hpp"
#include "workers/mosfet/solver/beam/beam_sweep.hpp"

namespace quasi::mosfet {
namespace {

/// Returns the results of rank 0 on every rank, in the order of the deck's points. Collective.
std::vector<PointResult> shared_results(SweepState& sweep) {
  std::vector<PointResult> results;
  for (int k = 0; k < static_cast<int>(sweep.deck.points.size()); ++k) {
    std::vector<double> values;
    if (sweep.ranks.leads()) {
      results.push_back(sweep.finished.at(k));
      if (sweep.ranks.size() == 1) continue;
      values = pack(results.back());
    }
    sweep.ranks.broadcast(values, 0);
    if (!sweep.ranks.leads())
      results.push_back(
          unpack_result({.owner = {}, .data = values.data(), .count = values.size()}));
  }
  return results;
}

}  // namespace

std::vector<PointResult> run_sweep(const Deck& deck, const SweepOptions& options,
                                   Progress& progress) {
  SweepState sweep(deck, options, progress);
  const bool is_beam = deck.run.scheme == StreamingScheme::kBeam;
  const std::size_t n_devices = options.devices.size(),
                    n_own = n_devices * (is_beam ? beam_points_at_once(sweep) : 1);
  const bool serves = sweep.ranks.leads() && sweep.ranks.size() > 1;
  std::atomic<bool> stop{false};
  on_every_device(n_own + (serves ? 1 : 0), stop, [&](std::size_t thread) {
    if (thread == n_own)
      sweep.serve_ranks(stop);
    else if (is_beam)
      run_beam_on_device(&sweep, options.devices[thread % n_devices], n_own, stop);
    else
      run_on_device(&sweep, options.devices[thread], stop);
  });
  if (!sweep.ranks.leads()) sweep.tell_done();
  return shared_results(sweep);
}

}  // namespace quasi::mosfet
