#include "workers/backend/ranks/ranks.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace quasi {
namespace {

/// A job in one process. Every collective call concerns the process alone.
class OneRank : public Ranks {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  int rank_on_host() const override { return 0; }
  int ranks_on_host() const override { return 1; }
  void send(int, int, std::vector<double>) override {
    throw Error("a job of one rank cannot send messages");
  }
  std::optional<Message> receive(int) override { return {}; }
  void meet_for(Step) override {}
  void broadcast(void*, std::size_t, int) override {}
  std::vector<std::vector<double>> gather(const std::vector<double>& mine) override {
    return {mine};
  }
  bool peer_failed() override { return false; }
  Ending end(int status, const std::string& message) override { return {status, 0, message}; }
};

int number_in_environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::max(1, std::atoi(text));
}

}  // namespace

Ranks& one_rank() {
  static OneRank alone;
  return alone;
}

LaunchedAs launched_as() {
  LaunchedAs as;
  // Variables of Open MPI's mpirun, PMIx (srun --mpi=pmix), MPICH's mpiexec and srun --mpi=pmi2.
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})
    as.by_mpi = as.by_mpi || std::getenv(name) != nullptr;
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
    as.processes = std::max(as.processes, number_in_environment(name, 1));
  return as;
}

Ranks::Message Ranks::wait_for(int tag) {
  using namespace std::chrono_literals;
  for (int tries = 0;; ++tries) {
    if (auto message = receive(tag)) return std::move(*message);
    if (peer_failed()) throw PeerFailed();
    if (tries > 100)
      std::this_thread::sleep_for(50us);
    else
      std::this_thread::yield();
  }
}

void Ranks::broadcast(std::vector<double>& values, int root) {
  if (size() == 1) return;
  std::uint64_t count = values.size();
  broadcast(&count, sizeof count, root);
  values.resize(count);
  broadcast(values.data(), count * sizeof(double), root);
}

void Ranks::require_same(std::uint64_t digest, const std::string& what) {
  if (size() == 1) return;
  double bits;  // carries bytes; it is never used as a number
  static_assert(sizeof bits == sizeof digest);
  std::memcpy(&bits, &digest, sizeof bits);
  const auto all = gather({bits});
  for (std::size_t other = 1; other < all.size(); ++other)
    if (std::memcmp(&all[other][0], &all[0][0], sizeof bits) != 0)
      throw InvalidInput("rank " + std::to_string(other) + " found other bits for " + what +
                         " than rank 0; every rank must read the same deck and run the same "
                         "program on a processor of one kind");
}

}  // namespace quasi
