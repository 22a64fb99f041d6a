#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/service/support/queue_world.hpp"
#include "tests/support/temporary_directory.hpp"

namespace quasi::server::test {

constexpr std::int64_t kHourMs = 3'600'000;

/// A queue with workers of GPUs, and users who share it.
class TurnsWorld {
 public:
  explicit TurnsWorld(QueueOptions options = {}) : options_(std::move(options)) { open(); }

  /// Opens the queue, again after a restart of the server.
  void open() {
    world_.reset();
    world_ =
        std::make_unique<QueueWorld>(ServerDisk{.files = system_files(),
                                                .root = root_.path().string(),
                                                .database = (root_.path() / "quasi.db").string()},
                                     clock_, random_, options_);
    for (const RegisterWorker& worker : workers_) world_->apply(worker);
  }

  /// Adds a worker with GPUs of one slot and 80 GiB each.
  const RegisterWorker& add_worker(const std::string& id, int gpus) {
    RegisterWorker worker = simple_gpu_worker(id, 1 + workers_.size(), 1);
    const DeviceStatus gpu = worker.devices.at(0);
    worker.devices.clear();
    worker.worker.devices.clear();
    for (int i = 0; i < gpus; ++i) {
      DeviceStatus status = gpu;
      status.device.id = "gpu" + std::to_string(i);
      status.device.memory_bytes = std::int64_t{80} << 30;
      status.free_bytes = status.device.memory_bytes;
      worker.devices.push_back(status);
      worker.worker.devices.push_back(status.device);
    }
    workers_.push_back(worker);
    world_->apply(worker);
    return workers_.back();
  }

  std::string submit(const Scope& user, const NewJob& job) {
    return world_
        ->apply(SubmitJobs{
            .scope = user, .request_id = uuid_of(++requests_), .body_sha256 = "b", .jobs = {job}})
        .uids.at(0);
  }
  /// Expects that a submission is refused. @return the reason and the message
  std::pair<std::string, std::string> refused(const Scope& user, const std::vector<NewJob>& jobs) {
    try {
      world_->apply(SubmitJobs{
          .scope = user, .request_id = uuid_of(++requests_), .body_sha256 = "b", .jobs = jobs});
    } catch (const Refused& refusal) {
      return {refusal.reason, refusal.what()};
    }
    return {};
  }

  /// Asks for jobs with every GPU of the worker.
  std::vector<Grant> acquire(const RegisterWorker& worker) {
    AcquireLeases command{.worker_id = worker.worker.id,
                          .incarnation = worker.worker.incarnation,
                          .acquire_id = uuid_of(++requests_)};
    for (const DeviceStatus& status : worker.devices)
      command.slots.push_back({.device_id = status.device.id, .free_bytes = status.free_bytes});
    return world_->apply(command).grants;
  }
  void complete(const Grant& grant) {
    world_->apply(StartAttempt{key_of(grant)});
    world_->apply(
        CompleteAttempt{.key = key_of(grant), .report_digest = "done" + grant.attempt.uid});
  }
  Explanation why(const std::string& uid) {
    Explanation explanation;
    world_->run([&](WriteContext& write) {
      explanation = write.queue.explain(Scope::everything(), uid, write.now);
    });
    return explanation;
  }
  void allow(const Account& account, const Allowance& allowance) {
    world_->apply(SetAllowance{.account = account, .allowance = allowance});
  }
  AccountView account(const Account& account) {
    AccountView view;
    world_->run([&](WriteContext& write) { view = write.queue.account(account, write.now); });
    return view;
  }

  FakeClock clock_;
  SeededRandom random_{1};
  quasi::test::TemporaryDirectory root_;
  QueueOptions options_;
  std::vector<RegisterWorker> workers_;
  std::unique_ptr<QueueWorld> world_;
  std::uint64_t requests_ = 0;
};

/// A job on GPUs with a time limit.
inline NewJob gpu_job(const std::string& name, std::int32_t gpus,
                      std::int64_t max_runtime_ms = kHourMs, std::int64_t memory_bytes = 0) {
  NewJob job = simple_job(name);
  job.row.gpus = gpus;
  job.row.max_runtime_ms = max_runtime_ms;
  job.row.memory_bytes = memory_bytes;
  return job;
}

}  // namespace quasi::server::test
