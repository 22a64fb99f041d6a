#pragma once

#include <string>
#include <vector>

#include "bench/service_load/server_process.hpp"
#include "quasi/v1/job_service.grpc.pb.h"
#include "quasi/v1/worker_service.grpc.pb.h"

namespace quasi::bench {

/// A worker of up to 256 slots without engines: it takes leases and reports what it is told.
class TestWorker {
 public:
  /// Registers the worker, with a file that its jobs give as their result.
  /// @param kinds  kinds of jobs that it takes
  explicit TestWorker(const ServerProcess& server, const std::vector<std::string>& kinds = {"test"},
                      int slots = 256);

  /// Takes up to `slots` jobs without waiting.
  std::vector<v1::Grant> acquire(int slots);
  void start(const v1::AttemptRef& attempt);
  /// Reports success with the file as `result.h5`.
  void succeed(const v1::AttemptRef& attempt);
  /// Reports that the job was stopped.
  void stopped(const v1::AttemptRef& attempt);

  const std::string& digest() const { return digest_; }
  std::uint64_t size_bytes() const { return size_bytes_; }

 private:
  void complete(const v1::CompleteAttemptRequest& request);

  std::unique_ptr<v1::WorkerService::Stub> stub_;
  std::string id_, incarnation_, digest_;
  std::uint64_t size_bytes_ = 0;
};

/// Submits jobs in one call. @throws std::runtime_error with the refusal
v1::SubmitJobsResponse submit(v1::JobService::Stub& stub, const std::vector<v1::JobSpec>& specs);

/// A job that does nothing.
v1::JobSpec noop(const std::string& name = "");

}  // namespace quasi::bench
