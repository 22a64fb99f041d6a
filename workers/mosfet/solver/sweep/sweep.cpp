#include "workers/mosfet/solver/sweep/sweep.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <thread>

#include "workers/mosfet/input/make_structure.hpp"
#include "workers/mosfet/solver/sweep/point_report.hpp"
#include "workers/mosfet/solver/sweep/sweep_state.hpp"
#include "workers/mosfet/solver/transport/transport_setup.hpp"

namespace quasi::mosfet {
namespace {

// Steady points of equal V_GS follow each other; every transient point stands alone.
std::vector<std::vector<int>> make_chains(const Deck& deck) {
  const int count = static_cast<int>(deck.points.size());
  std::vector<std::vector<int>> chains;
  if (deck.run.mode == RunMode::kTransient) {
    for (int k = 0; k < count; ++k) chains.push_back({k});
    return chains;
  }
  std::map<double, std::vector<int>> by_gate;
  for (int k = 0; k < count; ++k) by_gate[deck.points[k].vgs_v].push_back(k);
  for (auto& [vgs, chain] : by_gate) {
    std::stable_sort(chain.begin(), chain.end(), [&](int a, int b) {
      return std::fabs(deck.points[a].vds_v) < std::fabs(deck.points[b].vds_v);
    });
    chains.push_back(chain);
  }
  return chains;
}

}  // namespace

SweepState::SweepState(const Deck& deck_in, const SweepOptions& options_in, Progress& progress_in)
    : deck(deck_in),
      options(options_in),
      progress(progress_in),
      structure(make_structure(deck)),
      problem(make_transport_problem(deck, structure)),
      source(solve_contact(deck, structure, 0)),
      drain(solve_contact(deck, structure, structure.nx - 1)),
      key(resume_key(deck)),
      chains(make_chains(deck)),
      checkpoints(options.checkpoint_directory) {
  for (const auto& path : checkpoints.newest_first()) {
    auto found = read_checkpoint(path, key);
    if (!found) {
      progress.log("checkpoint " + path.filename().string() +
                   " is of another deck or version, or damaged; it is not used");
      continue;
    }
    snapshot = std::move(*found);
    progress.log("resumed from " + path.filename().string() + ": " +
                 std::to_string(snapshot.finished.size()) + " of " +
                 std::to_string(deck.points.size()) + " points finished");
    if (options.on_finished)
      for (const auto& [point, result] : snapshot.finished) options.on_finished(point, result);
    if (!options.output_directory.empty())
      for (const auto& [place, pdf] : snapshot.pdfs)
        write_snapshot(deck, problem, place.first, place.second, pdf, options.output_directory);
    break;
  }
  for (int chain = 0; chain < static_cast<int>(chains.size()); ++chain)
    if (next_position_locked(chain) < static_cast<int>(chains[chain].size()))
      queue.push_back(chain);
}

int SweepState::next_position_locked(int chain) const {
  int position = 0;
  while (position < static_cast<int>(chains[chain].size()) &&
         snapshot.finished.contains(chains[chain][position]))
    ++position;
  return position;
}

void SweepState::save_checkpoint_locked() {
  if (!checkpoints.keeps()) return;
  checkpoints.add(
      [this](const std::filesystem::path& path) { write_checkpoint(path, key, snapshot); },
      progress);
  last_checkpoint = std::chrono::steady_clock::now();
}

BiasPoint SweepState::bias_at(int point, double t_fs) const {
  const BiasPoint& bias = deck.points[static_cast<std::size_t>(point)];
  return {bias.vgs_v + deck.gate_wave.at(t_fs), bias.vds_v + deck.drain_wave.at(t_fs)};
}

std::vector<PointResult> run_sweep(const Deck& deck, const SweepOptions& options,
                                   Progress& progress) {
  SweepState sweep(deck, options, progress);
  const auto on_device = [&sweep](const Device& device) {
    try {
      run_on_device(&sweep, device);
    } catch (...) {
      const std::lock_guard lock(sweep.mutex);
      if (!sweep.failure) sweep.failure = std::current_exception();
      sweep.queue.clear();  // The other devices end with the points they hold.
    }
  };
  if (options.devices.size() == 1) {
    on_device(options.devices.front());
  } else {
    std::vector<std::jthread> threads;
    for (const Device& device : options.devices) threads.emplace_back(on_device, device);
  }
  if (sweep.failure) std::rethrow_exception(sweep.failure);
  std::vector<PointResult> results;
  for (int k = 0; k < static_cast<int>(deck.points.size()); ++k)
    results.push_back(sweep.snapshot.finished.at(k));
  return results;
}

}  // namespace quasi::mosfet
