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

/// The processes of one job, started together by mpirun or srun. Each works at its share of the
/// job's tiles, rows and portions; rank 0 alone writes results and checkpoints and speaks to
/// whoever waits.
///
/// Calls marked *together* are made by all ranks in the same order, by one thread of each; the
/// others are thread-safe. Whoever waits here notices within a moment that another rank has failed,
/// and throws PeerFailed. Only what rank 0, or a fixed order of ranks, decides is ever summed, so
/// that bits do not depend on their number.
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
  /// What has come from anyone under `tag`, if anything.
  virtual std::optional<Message> receive(int tag) = 0;
  /// The same, waiting. @throws PeerFailed
  Message wait_for(int tag);

  /// Together: all ranks have come this far. Ranks that went different ways, which would let them
  /// wait for each other for ever, are ended. @throws PeerFailed
  void meet() { meet_for(kMeet); }
  /// Together: `bytes` of rank `root` on every rank.
  virtual void broadcast(void* data, std::size_t bytes, int root) = 0;
  /// The same for values whose number only `root` knows.
  void broadcast(std::vector<double>& values, int root);
  /// Together: what every rank gives, in the order of the ranks, on every rank.
  virtual std::vector<std::vector<double>> gather(const std::vector<double>& mine) = 0;
  /// Together. @throws InvalidInput where a rank holds another digest: results would not be those
  /// of one process.
  void require_same(std::uint64_t digest, const std::string& what);

  /// True once another rank has failed.
  virtual bool peer_failed() = 0;
  /// Together, last: this rank's own end. A failing rank comes here from wherever it is.
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

/// What launchers leave in the environment.
struct LaunchedAs {
  bool by_mpi = false;  ///< this process is a rank
  int processes = 1;    ///< started together, as far as the environment tells
};
LaunchedAs launched_as();

}  // namespace quasi
