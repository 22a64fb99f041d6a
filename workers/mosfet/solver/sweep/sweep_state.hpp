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

/// State that all devices of this rank share in a sweep: the problem, the chains of bias points and
/// the finished results. The members below `mutex` are read and written under it.
///
/// Every rank runs the chains that the team's layout gives it. Rank 0 keeps the checkpoint, calls
/// `on_finished` and writes snapshots; the other ranks send it their news.
struct SweepState {
  /// Resumes from the newest checkpoint of rank 0 if there is one. Collective.
  SweepState(const Deck& deck, const SweepOptions& options, Progress& progress);

  /// First unfinished position of a chain. Under `mutex`.
  int next_position_locked(int chain) const;
  /// The deck's bias with its waveforms at a time.
  BiasPoint bias_at(int point, double t_fs) const;
  /// Number of bias points that a device advances together.
  /// @throws OutOfMemory if the memory budget is too small for one
  int lanes_of(const Device& device) const;
  /// True where pieces other than results are worth packing: a checkpoint is kept.
  bool keeps_pieces() const { return keeps_pieces_; }
  /// True once an interval for each turn, and once when the worker drains: time to publish the
  /// state of running points.
  bool is_turn(Checkpoint::Turn& turn);
  /// Puts news into the checkpoint, the log, the results and the output directory of rank 0, and
  /// writes the checkpoint.
  void publish(SweepNews news);
  /// Writes a line into the log of the job.
  void log(const std::string& line) { publish({.old = {}, .fresh = {}, .log = line}); }
  /// In rank 0: takes in the news of the other ranks until all of them are done.
  /// @throws PeerFailed, Cancelled
  void serve_ranks(const std::atomic<bool>& stop);
  /// In the other ranks: tells rank 0 that all chains of this rank are done.
  void tell_done();

  const Deck& deck;
  const SweepOptions& options;
  Progress& progress;
  Structure structure;
  TransportProblem problem;
  Equilibrium source, drain;
  std::vector<std::vector<int>> chains;  ///< points in the order in which they follow each other
  Ranks& ranks;
  TeamLayout layout;
  Checkpoint checkpoint;  ///< keeps nothing in ranks other than 0
  /// Pieces of an earlier attempt; [chains], without data where there is none.
  std::vector<Piece> resumed_running, resumed_waiting;

  std::mutex mutex;
  std::deque<int> queue;                ///< chains of this rank that no lane has taken
  std::map<int, PointResult> finished;  ///< by point; complete in rank 0 only
  int drains_asked = 0;                 ///< by rank 0

 private:
  void resume();
  void apply(SweepNews& news);
  bool keeps_pieces_ = false;
};

/// Runs chains from the queue on one device until none is left or `stop` is set.
void run_on_device(SweepState* sweep, const Device& device, const std::atomic<bool>& stop);

}  // namespace quasi::mosfet
