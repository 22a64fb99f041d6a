#pragma once

#include <grpcpp/channel.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "quasi/v1/job_service.grpc.pb.h"
#include "tests/service/support/program.hpp"
#include "tests/support/temporary_directory.hpp"

namespace quasi::test {

/// Begin here: a server, its workers and a client's stub in a directory of their own, as real
/// processes over a Unix socket. Tests always wait for a state. Leases are long, so that a slow
/// machine ends none of them; tests of expiry ask for short ones. Every job is computed, because
/// most tests compare runs of equal jobs; tests of the result cache turn it on.
class Service {
 public:
  /// Uses times that suit tests. `flags` are added to the server's flags or replace them.
  explicit Service(std::vector<std::string> server_flags = {});

  /// Adds flags in pairs to those of the server, from its next start.
  void add_server_flags(const std::vector<std::string>& flags) {
    server_flags_.insert(server_flags_.end(), flags.begin(), flags.end());
  }
  /// Starts the server and returns once it answers. @throws std::runtime_error with its output.
  void start_server();
  void kill_server() { server_.reset(); }
  Program& server() { return *server_; }
  bool server_runs() const { return server_ != nullptr; }

  /// Starts the daemon of that name. Its state directory outlives it.
  void start_worker(const std::string& name, const std::vector<std::string>& flags = {});
  void kill_worker(const std::string& name) { workers_.erase(name); }
  Program& worker(const std::string& name) { return workers_.at(name); }
  bool worker_runs(const std::string& name) const { return workers_.contains(name); }
  std::filesystem::path worker_state(const std::string& name) const;
  std::string worker_log(const std::string& name) const;

  v1::JobService::Stub& jobs() { return *stub_; }
  std::string address() const { return "unix:" + (directory_.path() / "server.sock").string(); }
  std::shared_ptr<grpc::Channel> channel() const { return channel_; }
  const std::filesystem::path& directory() const { return directory_.path(); }

  /// Submits jobs and repeats the call with one request id until the server answers. @throws on
  /// refusal.
  std::vector<std::string> submit(const std::vector<v1::JobSpec>& specs) {
    return submit(specs, *stub_);
  }
  /// Does the same for the caller of another stub.
  std::vector<std::string> submit(const std::vector<v1::JobSpec>& specs,
                                  v1::JobService::Stub& stub);
  std::string submit(const v1::JobSpec& spec) { return submit(std::vector{spec}).front(); }
  /// Gets a job and repeats the call while the server is unreachable.
  v1::Job get(const std::string& id);
  void cancel(const std::string& id);
  /// Waits until `holds` is true and returns the last view. If it never becomes true, the test
  /// fails.
  v1::Job wait(const std::string& id, const std::function<bool(const v1::Job&)>& holds,
               double seconds = kHangSeconds);
  v1::Job wait_state(const std::string& id, v1::JobState state);
  v1::Job wait_end(const std::string& id);
  /// The whole log of an attempt; 0 selects the newest.
  std::string log_of(const std::string& id, std::uint32_t attempt = 0);
  std::string artifact_text(const v1::Job& job, const std::string& name);

 private:
  TemporaryDirectory directory_;
  std::vector<std::string> server_flags_;
  std::unique_ptr<Program> server_;
  std::map<std::string, Program> workers_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::JobService::Stub> stub_;
};

bool is_final(v1::JobState state);

/// Test work by name.
v1::JobSpec noop();
v1::JobSpec sleep_for(double seconds);
v1::JobSpec hang(bool ignore_sigterm);
v1::JobSpec checkpointing(std::uint32_t steps, double interval_seconds);

}  // namespace quasi::test
