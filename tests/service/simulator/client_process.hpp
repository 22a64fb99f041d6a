#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/session/state.hpp"
#include "quasi/v1/job_service.pb.h"
#include "tests/service/simulator/server_process.hpp"

namespace quasi::sim {

/// A principal who uses the service.
struct Person {
  std::int64_t id = 0;
  std::string tenant;
};

/// The commands of one person. Each submission goes through the journal of production: it is
/// recorded and synced, then sent, and removed once it has an answer.
class ClientProcess {
 public:
  ClientProcess(const Surroundings& around, Person person, const std::filesystem::path& folder);

  // Each of these functions runs one command of the client. It throws client::Failure if the disk
  // that holds the journal of submissions fails.
  void submit();
  /// Repeats the submissions of the journal, as `quasi submit --resume` does.
  void resume();
  void cancel();
  void cancel_set();
  void change_turn();
  /// Holds a job that waits for its next attempt, one of a set if there is any, and releases it
  /// soon.
  void pause_retry();
  void release_all();
  void fetch();
  /// Reaches for a job or a set of another person.
  void reach_for_job_of(const ClientProcess& other);
  /// The process dies; answers on their way to it are lost.
  void kill();

  bool has_pending() const { return state_.pending_count() > 0; }
  const Person& person() const { return person_; }

 private:
  v1::JobSpec random_job(int place, bool may_wait);
  void add_waits(v1::JobSpec& spec, int place);
  void send(const v1::SubmitJobsRequest& request);
  void answered(const v1::SubmitJobsRequest& request, const grpc::Status& status,
                const v1::SubmitJobsResponse& response);
  std::string some_job() const;
  std::string some_set() const;
  void send_turn(const std::string& uid, server::ChangeTurns::Act act);
  server::Scope scope() const;
  /// Calls the server with a command of the queue.
  /// @param then  gets the status and the queue's answer
  template <class Command, class Then>
  void command(const char* method, const Command& command, Then then);

  Surroundings around_;
  Person person_;
  client::State state_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  int submissions_ = 0;
  std::vector<std::string> jobs_;  ///< ids that the person was told
  std::vector<std::string> sets_;  ///< ids of sets that the person was told
};

}  // namespace quasi::sim
