#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "workers/backend/error.hpp"

namespace quasi {

/// Thrown where a rank waits and another has failed; why is known to all only at the end
/// (Ranks::end).
struct PeerFailed : Error {
  using Error::Error;
};

/// The processes of one job, started together by mpirun or srun. Each computes its share of the
/// job. Rank 0 alone writes results and checkpoints and reports to the daemon or the terminal.
///
/// Collective calls are made by all ranks in the same order, by one thread of each. The other calls
/// are thread-safe. A rank that waits notices within a moment that another rank has failed, and
/// throws PeerFailed. Sums follow the order that rank 0 or the order of the ranks gives, so that
/// bits do not depend on the number of ranks.
class Ranks {
 public:
  struct Message {
    int from = 0;
    std::vector<double> values;
  };
  /// How the job ended, the same on every rank.
  struct Ending {
    int status = 0;  ///< of the lowest rank that failed by itself; 0: none
    int rank = 0;
    std::string message;
  };

  virtual ~Ranks() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int rank_on_host() const = 0;  ///< among the ranks of this host
  virtual int ranks_on_host() const = 0;
  bool leads() const { return rank() == 0; }

  /// Sends a copy; does not wait.
  virtual void send(int to, int tag, std::vector<double> values) = 0;
  /// The oldest message under `tag` from any rank; no value if none has arrived.
  virtual std::optional<Message> receive(int tag) = 0;
  /// The oldest message under `tag` from any rank; waits for one. @throws PeerFailed
  Message wait_for(int tag);

  /// Returns when all ranks have called it. Ranks that call different collective functions would
  /// wait for each other for ever; they are ended. Collective. @throws PeerFailed
  void meet() { meet_for(kMeet); }
  /// Copies `bytes` bytes of rank `root` to every rank. Collective.
  virtual void broadcast(void* data, std::size_t bytes, int root) = 0;
  /// Copies a list of rank `root`, which alone knows its length, to every rank. Collective.
  void broadcast(std::vector<double>& values, int root);
  /// The lists of all ranks in the order of the ranks, on every rank. Collective.
  virtual std::vector<std::vector<double>> gather(const std::vector<double>& mine) = 0;
  /// Collective. @throws InvalidInput where a rank holds another digest: results would not be those
  /// of one process.
  void require_same(std::uint64_t digest, const std::string& what);

  /// True once another rank has failed.
  virtual bool peer_failed() = 0;
  /// Ends this rank's part of the job and agrees on the job's ending. A failing rank calls it from
  /// any point; the others call it last. Collective.
  /// @param status  0: it has done its share
  virtual Ending end(int status, const std::string& message) = 0;

 protected:
  enum Step : int { kMeet, kBroadcast, kGather, kEnd, kSteps };
  virtual void meet_for(Step step) = 0;
};

/// A job in this process alone.
Ranks& one_rank();

/// The ranks that a launcher (mpirun, or srun --mpi=…) has started this process with; null if it
/// was started by itself. @throws BackendAbsent where several were started and this program was
/// built without MPI;
///         InvalidInput where srun started several without MPI.
// One body for each build: ranks_mpi.cpp and ranks_mpi_absent.cpp.
std::unique_ptr<Ranks> join_ranks();

/// The traces of an MPI launcher in the environment.
struct LaunchedAs {
  bool by_mpi = false;  ///< this process is a rank
  int processes = 1;    ///< started together, as far as the environment tells
};
LaunchedAs launched_as();

}  // namespace quasi
