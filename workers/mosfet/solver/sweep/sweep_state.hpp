#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "workers/backend/checkpoint/checkpoint.hpp"
#include "workers/backend/ranks/ranks.hpp"
#include "workers/backend/team/team_layout.hpp"
#include "workers/mosfet/solver/equilibrium/equilibrium.hpp"
#include "workers/mosfet/solver/sweep/sweep.hpp"
#include "workers/mosfet/solver/sweep/sweep_pieces.hpp"

namespace quasi::mosfet {

/// State of a sweep that all devices of this rank share: the problem, the chains of bias points and
/// the finished results. The members below `mutex` are read and written under it.
///
/// Every rank runs the chains that the team's layout assigns to it. Rank 0 keeps the checkpoint,
/// calls `on_finished` and writes snapshots. The other ranks send it their news.
struct SweepState {
  /// Builds the problem and resumes from the newest checkpoint of rank 0 if there is one.
  /// Collective.
  SweepState(const Deck& deck, const SweepOptions& options, Progress& progress);

  /// Returns the first unfinished position of a chain. The caller holds `mutex`.
  int next_position_locked(int chain) const;
  /// Returns the deck's bias with its waveforms at a time.
  BiasPoint bias_at(int point, double t_fs) const;
  /// Returns the number of bias points that a device advances together. @throws OutOfMemory if the
  /// memory budget is too small for one
  int lanes_of(const Device& device) const;
  /// Returns true if a checkpoint is kept, so that pieces other than results are worth packing.
  bool keeps_pieces() const { return keeps_pieces_; }
  /// Returns true once an interval for each turn, and once when the worker drains. The caller then
  /// publishes the state of the running points.
  bool is_turn(Checkpoint::Turn& turn);
  /// Passes news to rank 0: to the checkpoint, the log, the results and the output directory.
  /// Writes the checkpoint.
  void publish(SweepNews news);
  /// Writes a line into the log of the job.
  void log(const std::string& line) { publish({.old = {}, .fresh = {}, .log = line}); }
  /// Takes in rank 0 the news of the other ranks until all of them are done. @throws PeerFailed,
  /// Cancelled
  void serve_ranks(const std::atomic<bool>& stop);
  /// Tells rank 0, from another rank, that all chains of this rank are done.
  void tell_done();

  const Deck& deck;
  const SweepOptions& options;
  Progress& progress;
  Structure structure;
  TransportProblem problem;
  Equilibrium source, drain;
  std::vector<std::vector<int>> chains;  ///< points of each chain, in the order of the calculation
  Ranks& ranks;
  TeamLayout layout;
  Checkpoint checkpoint;  ///< keeps nothing in ranks other than 0
  /// Pieces of an earlier attempt [chains]; a piece without data marks an absent one.
  std::vector<Piece> resumed_running, resumed_waiting;

  std::mutex mutex;
  std::deque<int> queue;                ///< chains of this rank that no lane has taken
  std::map<int, PointResult> finished;  ///< by point; complete in rank 0 only
  int drains_asked = 0;                 ///< number of drains that rank 0 has requested

 private:
  void resume();
  void apply(SweepNews& news);
  bool keeps_pieces_ = false;
};

/// Runs chains from the queue on one device until no chain is left or `stop` is set.
void run_on_device(SweepState* sweep, const Device& device, const std::atomic<bool>& stop);

}  // namespace quasi::mosfet
