#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "workers/backend/error.hpp"

namespace quasi {

/// Thrown in a rank that waits while another rank has failed. Ranks::end() tells all ranks the
/// cause.
struct PeerFailed : Error {
  PeerFailed() : Error("another rank of the job has failed; its own message names the cause") {}
};

/// Begin here: workers/backend/ranks connects the processes of one job, started by mpirun or srun.
/// Each rank computes its share. Rank 0 alone writes results and checkpoints and reports to the
/// daemon or the terminal.
///
/// All ranks make collective calls in the same order, from one thread of each. The other calls are
/// thread-safe. A waiting rank soon notices that another rank has failed and throws PeerFailed.
/// Sums follow a fixed order, so that bits do not depend on the number of ranks.
class Ranks {
 public:
  struct Message {
    int from = 0;
    std::vector<double> values;
  };
  /// Ending of the job, equal on every rank.
  struct Ending {
    int status = 0;  ///< status of the lowest rank that failed by itself; 0: none
    int rank = 0;
    std::string message;
  };

  virtual ~Ranks() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int rank_on_host() const = 0;  ///< among the ranks of this host
  virtual int ranks_on_host() const = 0;
  bool leads() const { return rank() == 0; }

  /// Sends a copy of the values and does not wait.
  virtual void send(int to, int tag, std::vector<double> values) = 0;
  /// Returns the oldest message under `tag` from any rank, or no value if none has arrived.
  virtual std::optional<Message> receive(int tag) = 0;
  /// Waits for a message under `tag` from any rank and returns the oldest. @throws PeerFailed
  Message wait_for(int tag);

  /// Returns when all ranks have called it. Ranks that call different collective functions would
  /// wait for each other for ever; meet() ends them. Collective. @throws PeerFailed
  void meet() { meet_for(kMeet); }
  /// Copies `bytes` bytes of rank `root` to every rank. Collective.
  virtual void broadcast(void* data, std::size_t bytes, int root) = 0;
  /// Copies a list of rank `root`, which alone knows its length, to every rank. Collective.
  void broadcast(std::vector<double>& values, int root);
  /// Returns on every rank the lists of all ranks, in the order of the ranks. Collective.
  virtual std::vector<std::vector<double>> gather(const std::vector<double>& mine) = 0;
  /// Compares a digest between all ranks. Collective. @throws InvalidInput if a rank has another
  /// digest, because results would then differ from those of one process.
  void require_same(std::uint64_t digest, const std::string& what);

  /// Returns true once another rank has failed.
  virtual bool peer_failed() = 0;
  /// Ends this rank's part of the job and agrees on the job's ending. A failing rank calls it from
  /// any point; the others call it last. Collective. @param status  0: the rank has done its share
  virtual Ending end(int status, const std::string& message) = 0;

 protected:
  enum Step : int { kMeet, kBroadcast, kGather, kEnd, kSteps };
  virtual void meet_for(Step step) = 0;
};

/// Returns the ranks of a job in this process alone.
Ranks& one_rank();

/// Returns the ranks that a launcher (mpirun, or srun --mpi=…) has started with this process, or
/// null if the process was started alone.
/// @throws BackendAbsent if several ranks were started and this program was built without MPI
/// @throws InvalidInput if srun started several processes without MPI.
// ranks_mpi.cpp and ranks_mpi_absent.cpp define this function, one for each build.
std::unique_ptr<Ranks> join_ranks();

/// Facts about an MPI launcher, read from the environment.
struct LaunchedAs {
  bool by_mpi = false;  ///< true if this process is a rank
  int processes = 1;    ///< processes started by one launcher, according to the environment
};
/// Reads these facts from the environment.
LaunchedAs launched_as();

}  // namespace quasi
