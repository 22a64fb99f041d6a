#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <list>
#include <mutex>
#include <thread>

#include "workers/backend/ranks/ranks.hpp"

namespace quasi {
namespace {

constexpr int kFailureTag = 1;  // tags of callers are larger
constexpr int kFirstTag = 16;
constexpr std::size_t kPieceBytes = std::size_t{1} << 30;  // MPI counts have 32 bits
constexpr auto kPollEvery = std::chrono::milliseconds(1);

/// State that a rank contributes to a collective call. All ranks learn the largest.
enum Standing : int {
  kFine = 0,
  kSawAFailure = 1,
  kFailed = 2 /* + number of higher ranks, so that the lowest wins */
};

void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw Error(std::string(what) +
              " failed: " + std::string(text, static_cast<std::size_t>(length)));
}

/// Ranks over MPI. All MPI calls are made under one mutex. No call blocks, except collective calls
/// that all ranks are known to have reached (meet). A rank that fails therefore never leaves
/// another one blocked inside MPI.
class MpiRanks : public Ranks {
 public:
  MpiRanks() {
    int provided = MPI_THREAD_SINGLE;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    MPI_Comm host;
    check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host),
          "finding the ranks of this host");
    MPI_Comm_rank(host, &rank_on_host_);
    MPI_Comm_size(host, &ranks_on_host_);
    MPI_Comm_free(&host);
    if (provided < MPI_THREAD_SERIALIZED && size_ > 1)
      throw BackendAbsent(
          "this MPI library does not allow calls from several threads (MPI_THREAD_SERIALIZED); use "
          "one "
          "that does");
  }
  ~MpiRanks() override {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (!finalized) MPI_Finalize();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int rank_on_host() const override { return rank_on_host_; }
  int ranks_on_host() const override { return ranks_on_host_; }

  void send(int to, int tag, std::vector<double> values) override {
    const std::lock_guard lock(mutex_);
    start_send(to, kFirstTag + tag, std::move(values));
  }

  std::optional<Message> receive(int tag) override {
    const std::lock_guard lock(mutex_);
    forget_finished_sends();
    return take(kFirstTag + tag);
  }

  void meet_for(Step step) override {
    const int worst = meet_with(kFine, step);
    if (worst == kFine) return;
    met_failure_ = worst;
    failed_elsewhere_ = true;
    throw PeerFailed();
  }

  void broadcast(void* data, std::size_t bytes, int root) override {
    if (size_ == 1) return;
    meet_for(kBroadcast);
    broadcast_now(data, bytes, root);
  }

  std::vector<std::vector<double>> gather(const std::vector<double>& mine) override {
    if (size_ == 1) return {mine};
    meet_for(kGather);
    const std::lock_guard lock(mutex_);
    std::vector<std::uint64_t> count(static_cast<std::size_t>(size_));
    const std::uint64_t own = mine.size();
    check(MPI_Allgather(&own, 1, MPI_UINT64_T, count.data(), 1, MPI_UINT64_T, MPI_COMM_WORLD),
          "gathering counts");
    std::vector<std::vector<double>> all(static_cast<std::size_t>(size_));
    for (int from = 0; from < size_; ++from) {
      auto& values = all[static_cast<std::size_t>(from)];
      if (from == rank_)
        values = mine;
      else
        values.resize(count[static_cast<std::size_t>(from)]);
      broadcast_pieces(values.data(), values.size() * sizeof(double), from);
    }
    return all;
  }

  bool peer_failed() override {
    if (failed_elsewhere_) return true;
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    auto last = last_poll_.load();
    if (size_ == 1 || now - std::chrono::steady_clock::duration(last) < kPollEvery) return false;
    if (!last_poll_.compare_exchange_strong(last, now.count())) return failed_elsewhere_;
    const std::lock_guard lock(mutex_);
    forget_finished_sends();
    if (take(kFailureTag)) failed_elsewhere_ = true;
    return failed_elsewhere_;
  }

  Ending end(int status, const std::string& message) override {
    if (size_ == 1) return {status, 0, message};
    int worst = met_failure_;
    if (worst == kFine) {  // no earlier collective call has reported a failure
      int standing = status == 0         ? kFine
                     : failed_elsewhere_ ? kSawAFailure
                                         : kFailed + size_ - 1 - rank_;
      if (standing >= kFailed) {
        const std::lock_guard lock(mutex_);
        for (int other = 0; other < size_; ++other)
          if (other != rank_) start_send(other, kFailureTag, {1.0});
      }
      worst = meet_with(standing, kEnd);
    }
    Ending ending{status, rank_, message};
    if (worst >= kFailed) {
      ending.rank = size_ - 1 - (worst - kFailed);
      std::uint64_t head[2] = {static_cast<std::uint64_t>(status), message.size()};
      broadcast_now(head, sizeof head, ending.rank);
      ending.status = static_cast<int>(head[0]);
      ending.message.resize(head[1]);
      broadcast_now(ending.message.data(), head[1], ending.rank);
    }
    drain();
    return ending;
  }

 private:
  /// Waits for all ranks without blocking inside MPI and returns the worst state. Collective.
  int meet_with(int standing, Step step) {
    // Ranks in different collective calls would wait for each other for ever. The kind of call is
    // therefore compared.
    const int mine[3] = {standing, step, -step};
    int all[3] = {};
    MPI_Request request;
    {
      const std::lock_guard lock(mutex_);
      check(MPI_Iallreduce(mine, all, 3, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &request), "meeting");
    }
    for (int tries = 0;; ++tries) {
      int done = 0;
      {
        const std::lock_guard lock(mutex_);
        check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "meeting");
      }
      if (done) break;
      if (tries > 200)
        std::this_thread::sleep_for(std::chrono::microseconds(tries > 2000 ? 200 : 20));
      else
        std::this_thread::yield();
    }
    if (all[0] == kFine && all[1] != -all[2]) {
      std::fprintf(stderr,
                   "error: rank %d: the ranks of this job made different collective calls; this is "
                   "a defect, "
                   "or their processors round differently\n",
                   rank_);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return all[0];
  }

  void start_send(int to, int tag, std::vector<double> values) {
    forget_finished_sends();
    sends_.push_back({std::move(values), MPI_REQUEST_NULL});
    Sending& sending = sends_.back();
    check(MPI_Isend(sending.values.data(), static_cast<int>(sending.values.size()), MPI_DOUBLE, to,
                    tag, MPI_COMM_WORLD, &sending.request),
          "sending");
  }
  void forget_finished_sends() {
    for (auto it = sends_.begin(); it != sends_.end();) {
      int done = 0;
      check(MPI_Test(&it->request, &done, MPI_STATUS_IGNORE), "sending");
      it = done ? sends_.erase(it) : std::next(it);
    }
  }
  std::optional<Message> take(int tag) {
    int here = 0;
    MPI_Message handle;
    MPI_Status status;
    check(MPI_Improbe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &here, &handle, &status),
          "looking for messages");
    if (!here) return {};
    int count = 0;
    MPI_Get_count(&status, MPI_DOUBLE, &count);
    Message message{status.MPI_SOURCE, std::vector<double>(static_cast<std::size_t>(count))};
    check(MPI_Mrecv(message.values.data(), count, MPI_DOUBLE, &handle, MPI_STATUS_IGNORE),
          "receiving");
    return message;
  }

  void broadcast_now(void* data, std::size_t bytes, int root) {
    const std::lock_guard lock(mutex_);
    broadcast_pieces(data, bytes, root);
  }
  void broadcast_pieces(void* data, std::size_t bytes, int root) {
    for (std::size_t at = 0; at < bytes; at += kPieceBytes)
      check(MPI_Bcast(static_cast<char*>(data) + at,
                      static_cast<int>(std::min(kPieceBytes, bytes - at)), MPI_BYTE, root,
                      MPI_COMM_WORLD),
            "broadcasting");
  }

  /// Receives the messages that are still under way, so that MPI can be closed. Collective.
  void drain() {
    MPI_Request request = MPI_REQUEST_NULL;
    for (bool met = false;;) {
      {
        const std::lock_guard lock(mutex_);
        take(MPI_ANY_TAG);
        forget_finished_sends();
        if (!met && sends_.empty()) {
          check(MPI_Ibarrier(MPI_COMM_WORLD, &request), "ending");
          met = true;
        }
        int done = 0;
        if (met) check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "ending");
        if (done) return;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

  struct Sending {
    std::vector<double> values;
    MPI_Request request;
  };
  int rank_ = 0, size_ = 1, rank_on_host_ = 0, ranks_on_host_ = 1;
  std::mutex mutex_;
  std::list<Sending> sends_;
  int met_failure_ = kFine;
  std::atomic<bool> failed_elsewhere_{false};
  std::atomic<std::chrono::steady_clock::rep> last_poll_{0};
};

}  // namespace

std::unique_ptr<Ranks> join_ranks() {
  const LaunchedAs as = launched_as();
  if (!as.by_mpi) {
    if (as.processes > 1)
      throw InvalidInput("srun started " + std::to_string(as.processes) +
                         " separate processes; use srun --mpi=pmix (srun "
                         "--mpi=list shows what is there), or one task");
    return {};
  }
  return std::make_unique<MpiRanks>();
}

}  // namespace quasi
