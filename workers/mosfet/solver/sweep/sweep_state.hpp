#pragma once

#include <chrono>
#include <deque>
#include <exception>
#include <mutex>
#include <vector>

#include "workers/backend/checkpoint/checkpoint_files.hpp"
#include "workers/mosfet/solver/equilibrium/equilibrium.hpp"
#include "workers/mosfet/solver/sweep/checkpoint.hpp"
#include "workers/mosfet/solver/sweep/sweep.hpp"

namespace quasi::mosfet {

/// What all devices of a sweep share: the problem, the chains of bias points, and what is done. The
/// members below `mutex` are read and written under it.
struct SweepState {
  /// Resumes from the newest checkpoint if there is one.
  SweepState(const Deck& deck, const SweepOptions& options, Progress& progress);

  /// First unfinished position of a chain. Under `mutex`.
  int next_position_locked(int chain) const;
  void save_checkpoint_locked();
  /// The deck's bias with its waveforms at a time.
  BiasPoint bias_at(int point, double t_fs) const;

  const Deck& deck;
  const SweepOptions& options;
  Progress& progress;
  Structure structure;
  TransportProblem problem;
  Equilibrium source, drain;
  std::string key;
  std::vector<std::vector<int>> chains;  ///< points in the order in which they follow each other
  CheckpointFiles checkpoints;

  std::mutex mutex;
  std::deque<int> queue;  ///< chains that nobody runs yet
  SweepSnapshot snapshot;
  std::exception_ptr failure;
  std::chrono::steady_clock::time_point last_checkpoint = std::chrono::steady_clock::now();
};

/// Runs chains from the queue on one device until none is left.
void run_on_device(SweepState* sweep, const Device& device);

}  // namespace quasi::mosfet
