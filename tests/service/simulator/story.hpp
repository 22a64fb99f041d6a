#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/service/files/journal_disk.hpp"
#include "tests/service/simulator/operator_process.hpp"
#include "tests/service/simulator/worker_machine.hpp"
#include "tests/support/temporary_directory.hpp"

namespace quasi::sim {

/// The outcome of one story.
struct Verdict {
  std::string violation;  ///< the first one; "" if there is none
  std::string last_lines;
  std::string digest;  ///< of the whole history
  std::int64_t events = 0;
  std::int64_t virtual_ms = 0;  ///< on the clock of the story
  std::int64_t calm_ms = 0;     ///< of these, without faults
  std::size_t jobs = 0;
  int server_starts = 0;
  std::map<std::string, int> counts;
};

/// Three users, an operator, three machines and a server, with faults of all kinds for a number of
/// events. Then the faults stop, and the story goes on until every job has ended.
class Story {
 public:
  Story(std::uint64_t seed, const std::filesystem::path& folder);

  /// @param n_events  number of events before the faults stop
  Verdict run(std::int64_t n_events);

 private:
  void plan_act();
  void act();
  void act_of_people();
  void act_of_operator();
  void fault_of_workers();
  void fault_of_server();
  /// Cuts the power of the machine on which the clients run. Their journals lose all bytes that
  /// were not synced.
  void restart_people();
  /// Runs a command. It ends if the disk of its journal fails.
  void command(const std::function<void()>& action);
  void revive_server();
  void step();
  void calm_down();
  /// Repeats submissions without an answer, releases held jobs, puts all devices back into service
  /// and restarts quarantined workers.
  void tend();
  bool is_done();

  Dice dice_;
  Timeline timeline_;
  Judge judge_;
  Network network_;
  server::test::PowerCutDisk journal_disk_;
  server::test::JournalDisk journals_;
  ServerProcess server_;
  std::vector<std::unique_ptr<WorkerMachine>> machines_;
  std::vector<std::unique_ptr<ClientProcess>> people_;
  std::unique_ptr<OperatorProcess> operator_;
  bool is_calm_ = false;
  bool server_is_awaited_ = false;
};

}  // namespace quasi::sim
