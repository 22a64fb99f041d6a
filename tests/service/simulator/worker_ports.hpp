#pragma once

// The ways of a simulated daemon to its server, its devices and its background threads.

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proto/wire/digest.hpp"
#include "proto/wire/validate.hpp"
#include "server/api/convert.hpp"
#include "server/api/status.hpp"
#include "server/api/workers/worker_calls.hpp"
#include "tests/service/simulator/worker_machine.hpp"

namespace quasi::sim {

/// Runs background work as an event, and what follows it as another one.
class WorkerMachine::Later : public Background {
 public:
  explicit Later(WorkerMachine& machine) : machine_(machine) {}
  void run(std::function<void()> work, std::function<void()> done) override {
    const std::int64_t delay_ms = machine_.around_.dice.draw(1, 100);
    machine_.later(delay_ms, std::move(work));
    machine_.later(delay_ms + machine_.around_.dice.draw(1, 50), std::move(done));
  }

 private:
  WorkerMachine& machine_;
};

class WorkerMachine::Devices : public DeviceSource {
 public:
  explicit Devices(WorkerMachine& machine) : machine_(machine) {}
  std::vector<WorkerDevice> devices() override {
    std::vector<WorkerDevice> all;
    for (const SimulatedDevice& each : machine_.devices_) all.push_back(each.device);
    return all;
  }
  DeviceHealth health(const WorkerDevice& device) override {
    DeviceHealth health{.free_bytes = device.memory_bytes};
    for (const SimulatedDevice& each : machine_.devices_)
      if (each.device.uuid == device.uuid) {
        if (!each.fault.empty()) health.fault = each.fault;
        if (each.attempt_bytes > 0) health.attempt_bytes = each.attempt_bytes;
      }
    return health;
  }
  std::string self_test(const WorkerDevice& device) override {
    return health(device).fault.value_or("");
  }

 private:
  WorkerMachine& machine_;
};

/// Moves the bytes of blobs between the disks of the machine and of the server.
class WorkerMachine::Blobs : public BlobTransfer {
 public:
  explicit Blobs(WorkerMachine& machine) : machine_(machine) {}
  grpc::Status download(const std::string& digest, std::uint64_t, const std::filesystem::path& to,
                        const std::atomic<bool>&) override {
    if (is_broken()) return {grpc::StatusCode::UNAVAILABLE, "the connection broke"};
    std::string bytes;
    const grpc::Status status = machine_.around_.server.get_blob(digest, &bytes);
    if (status.ok()) machine_.files_.write_file(to, bytes);
    return status;
  }
  grpc::Status upload(const std::filesystem::path& from, const std::string& digest, std::uint64_t,
                      const std::atomic<bool>&) override {
    if (is_broken()) return {grpc::StatusCode::UNAVAILABLE, "the connection broke"};
    const auto bytes = machine_.files_.read_file(from);
    if (!bytes || wire::sha256_hex(*bytes) != digest)
      return {grpc::StatusCode::INVALID_ARGUMENT, "the file has other bytes"};
    const grpc::Status status = machine_.around_.server.put_blob(*bytes);
    if (status.ok() && is_broken()) return {grpc::StatusCode::UNAVAILABLE, "the answer was lost"};
    return status;
  }

 private:
  bool is_broken() {
    auto& [timeline, dice, network, server, judge] = machine_.around_;
    return network.is_cut(machine_.name_) || (!network.is_calm() && dice.one_in(25));
  }
  WorkerMachine& machine_;
};

/// The calls of the daemon. The server runs the code of its worker service on them; the judge sees
/// each in its transaction.
class WorkerMachine::Link : public ServerLink {
 public:
  Link(WorkerMachine& machine, Alive alive) : machine_(machine), alive_(std::move(alive)) {}

  void register_worker(const v1::RegisterRequest& request,
                       Then<v1::RegisterResponse> then) override {
    call<v1::RegisterResponse>(
        "Register", request, kLimitMs, then,
        [&judge = judge(), &server = server(), request](WriteContext& write,
                                                        v1::RegisterResponse& response) {
          server::register_worker(write, server.options(), request, response);
          judge.note_devices(request.worker_id(),
                             {request.devices().begin(), request.devices().end()}, false, true);
          for (const auto& answer : response.salvage()) prolong(judge, answer);
        });
  }
  void acquire(const v1::AcquireLeasesRequest& request,
               Then<v1::AcquireLeasesResponse> then) override {
    check(request);
    machine_.note_poll();
    poll_then_ = back_home<v1::AcquireLeasesResponse>(then);
    poll_ = machine_.around_.network.call<v1::AcquireLeasesResponse>(
        machine_.name_, alive_, 25'000,
        [&server = server(), request](auto back, const Awaited& awaited) {
          server.acquire(request, awaited, back);
        },
        poll_then_);
  }
  void cancel_acquire() override {
    if (!poll_ || std::exchange(poll_->is_over, true)) return;
    machine_.around_.timeline.plan_timeout(1, [alive = alive_, then = poll_then_] {
      if (alive.lock())
        then({grpc::StatusCode::CANCELLED, "cancelled"}, v1::AcquireLeasesResponse());
    });
  }
  void heartbeat(const v1::HeartbeatRequest& request, Milliseconds limit,
                 Then<v1::HeartbeatResponse> then) override {
    call<v1::HeartbeatResponse>("Heartbeat", request, limit.count(), then,
                                [&judge = judge(), &server = server(), request](
                                    WriteContext& write, v1::HeartbeatResponse& response) {
                                  server::keep_leases(write, server.options(), request, response);
                                  judge.note_devices(
                                      request.worker_id(),
                                      {request.devices().begin(), request.devices().end()},
                                      request.draining(), false);
                                  for (const auto& answer : response.attempts())
                                    prolong(judge, answer);
                                });
  }
  void start_attempt(const v1::StartAttemptRequest& request,
                     Then<v1::StartAttemptResponse> then) override {
    call<v1::StartAttemptResponse>(
        "StartAttempt", request, kLimitMs, then,
        [&judge = judge(), request](WriteContext& write, v1::StartAttemptResponse&) {
          server::start_attempt(write, request);
          judge.check_accepted_call(write, request.attempt(), "StartAttempt");
        });
    if (!machine_.around_.network.is_calm() && machine_.around_.dice.one_in(20))
      report_success_early(request.attempt());
  }
  void append_log(const v1::AppendLogRequest& request, Then<v1::AppendLogResponse> then) override {
    call<v1::AppendLogResponse>(
        "AppendLog", request, kLimitMs,
        [&judge = judge(), request, then](const grpc::Status& status,
                                          const v1::AppendLogResponse& response) {
          if (status.ok())
            judge.note_log(request.attempt().attempt_id(), request.data(),
                           static_cast<std::int64_t>(request.offset()),
                           static_cast<std::int64_t>(response.length()));
          then(status, response);
        },
        [&judge = judge(), request](WriteContext& write, v1::AppendLogResponse& response) {
          server::append_log(write, request, response);
          judge.check_accepted_call(write, request.attempt(), "AppendLog");
        });
  }
  void record_checkpoint(const v1::RecordCheckpointRequest& request,
                         Then<v1::RecordCheckpointResponse> then) override {
    call<v1::RecordCheckpointResponse>(
        "RecordCheckpoint", request, kLimitMs,
        [&judge = judge(), request, then](const grpc::Status& status,
                                          const v1::RecordCheckpointResponse& response) {
          if (status.ok())
            judge.note_checkpoint(request.attempt(), static_cast<std::int64_t>(request.sequence()));
          then(status, response);
        },
        [&judge = judge(), request](WriteContext& write, v1::RecordCheckpointResponse&) {
          server::record_checkpoint(write, request);
          judge.check_accepted_call(write, request.attempt(), "RecordCheckpoint");
          judge.check_recorded_checkpoint(request.digest());
        });
  }
  void complete(const v1::CompleteAttemptRequest& request,
                Then<v1::CompleteAttemptResponse> then) override {
    call<v1::CompleteAttemptResponse>(
        "CompleteAttempt", request, kLimitMs,
        [&judge = judge(), request, then](const grpc::Status& status,
                                          const v1::CompleteAttemptResponse& response) {
          if (status.ok() && request.has_succeeded())
            judge.check_success_answer(request.attempt(), static_cast<JobState>(response.state()));
          then(status, response);
        },
        [&judge = judge(), request](WriteContext& write, v1::CompleteAttemptResponse& response) {
          const auto report = judge.find_reported_attempt(write, request.attempt());
          try {
            server::complete_attempt(write, request, response);
          } catch (const server::Refused&) {
            if (request.has_succeeded()) judge.check_refused_success(request.attempt());
            throw;
          }
          judge.check_accepted_report(write, report, static_cast<JobState>(response.state()));
        });
  }
  void release(const v1::ReleaseLeaseRequest& request,
               Then<v1::ReleaseLeaseResponse> then) override {
    call<v1::ReleaseLeaseResponse>(
        "ReleaseLease", request, kLimitMs, then,
        [&judge = judge(), request](WriteContext& write, v1::ReleaseLeaseResponse& response) {
          const auto report = judge.find_reported_attempt(write, request.attempt());
          server::release_lease(write, request, response);
          judge.check_accepted_report(write, report, static_cast<JobState>(response.state()));
        });
  }

 private:
  static constexpr std::int64_t kLimitMs = 10'000;

  /// A faulty worker reports a success before the start of its engine. Nothing may change (I3).
  void report_success_early(const v1::AttemptRef& attempt) {
    v1::CompleteAttemptRequest request;
    *request.mutable_attempt() = attempt;
    request.mutable_succeeded();
    auto was_sent = std::make_shared<bool>(false);
    server().write(
        "CompleteAttempt",
        [&judge = judge(), request, was_sent](WriteContext& write) {
          *was_sent = judge.is_unstarted(request.attempt());
          v1::CompleteAttemptResponse response;
          if (*was_sent) server::complete_attempt(write, request, response);
        },
        [&judge = judge(), attempt, was_sent](const grpc::Status& status) {
          if (status.ok() && *was_sent)
            judge.report_violation("I3", "the success of fence " + std::to_string(attempt.fence()) +
                                             " was accepted before its start");
        });
  }
  static void prolong(Judge& judge, const v1::AttemptDirective& answer) {
    if (answer.directive() != v1::DIRECTIVE_FENCED)
      judge.note_prolonged_lease(static_cast<std::int64_t>(answer.fence()));
  }
  Judge& judge() { return machine_.around_.judge; }
  ServerProcess& server() { return machine_.around_.server; }
  /// A daemon sends no request that the server refuses by its fields.
  template <class Request>
  void check(const Request& request) {
    wire::Violations violations;
    wire::validate(request, violations);
    if (!violations.empty())
      judge().report_violation("requests", "the daemon sent " + violations.list().front().field +
                                               ": " + violations.list().front().description);
  }
  /// The answer as a part of the daemon that made the call.
  template <class Response>
  Then<Response> back_home(Then<Response> then) {
    return [this, alive = alive_, then](const grpc::Status& status, const Response& response) {
      if (!alive.lock()) return;
      machine_.run([&] { then(status, response); });
    };
  }
  template <class Response, class Request, class Handle>
  void call(const char* method, const Request& request, std::int64_t limit_ms, Then<Response> then,
            Handle handle) {
    check(request);
    machine_.around_.network.call<Response>(
        machine_.name_, alive_, limit_ms,
        [&server = server(), method, handle](auto back, const Awaited&) {
          auto response = std::make_shared<Response>();
          server.write(
              method, [handle, response](WriteContext& write) { handle(write, *response); },
              [back, response](const grpc::Status& status) { back(status, *response); });
        },
        back_home<Response>(then));
  }

  WorkerMachine& machine_;
  Alive alive_;
  std::shared_ptr<OpenCall> poll_;
  Then<v1::AcquireLeasesResponse> poll_then_;
};

}  // namespace quasi::sim
