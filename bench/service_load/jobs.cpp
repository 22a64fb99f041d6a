// Cancels at once, results taken from equal jobs, a long queue, and a day's work compressed.

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "bench/service_load/cases.hpp"
#include "bench/service_load/test_worker.hpp"
#include "proto/wire/digest.hpp"

namespace quasi::bench {
namespace {

grpc::Status cancel(v1::JobService::Stub& stub, const std::string& id) {
  grpc::ClientContext context;
  v1::CancelJobsRequest request;
  request.add_job_ids(id);
  v1::CancelJobsResponse response;
  return stub.CancelJobs(&context, request, &response);
}

v1::Job get(v1::JobService::Stub& stub, const std::string& id) {
  grpc::ClientContext context;
  v1::GetJobRequest request;
  request.set_job_id(id);
  v1::GetJobResponse response;
  const grpc::Status status = stub.GetJob(&context, request, &response);
  if (!status.ok()) throw std::runtime_error("GetJob: " + status.error_message());
  return response.job();
}

/// Cancels each job by a call of its own, of 64 callers. @return times of the answers in ms
std::vector<double> cancel_each(const ServerProcess& server, const std::vector<std::string>& ids) {
  std::mutex mutex;
  std::vector<double> times_ms;
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 64; ++i)
    callers.emplace_back([&] {
      const auto stub = v1::JobService::NewStub(server.connect());
      get(*stub, ids.front());  // The connection is open.
      for (std::size_t job = next++; job < ids.size(); job = next++) {
        const auto start = Clock::now();
        const bool is_ok = cancel(*stub, ids[job]).ok();
        const double took_ms = 1e3 * seconds_since(start);
        const std::lock_guard lock(mutex);
        times_ms.push_back(is_ok ? took_ms : 1e9);
      }
    });
  for (std::thread& caller : callers) caller.join();
  return times_ms;
}

}  // namespace

void cancels(const std::filesystem::path& folder, int size) {
  const int n_jobs = size > 0 ? size : 1'000;
  const ServerProcess server(folder);
  const auto stub = v1::JobService::NewStub(server.connect());
  TestWorker worker(server);
  const auto submitted =
      submit(*stub, std::vector<v1::JobSpec>(static_cast<std::size_t>(n_jobs), noop()));
  std::vector<v1::Grant> running = worker.acquire(std::min(256, n_jobs / 2));
  for (const v1::Grant& grant : running) worker.start(grant.attempt());
  // Half of the running jobs end by themselves while they are cancelled.
  std::thread ends([&] {
    for (std::size_t i = 0; i < running.size(); i += 2) try {
        worker.succeed(running[i].attempt());
      } catch (const std::runtime_error&) {  // It was cancelled before.
        worker.stopped(running[i].attempt());
      }
  });
  std::vector<double> times_ms =
      cancel_each(server, {submitted.job_ids().begin(), submitted.job_ids().end()});
  ends.join();
  for (std::size_t i = 1; i < running.size(); i += 2) worker.stopped(running[i].attempt());
  std::map<std::string, int> states;
  for (const std::string& id : submitted.job_ids())
    ++states[v1::JobState_Name(get(*stub, id).state())];
  std::string ended;
  for (const auto& [state, count] : states) ended += ",\"" + state + "\":" + std::to_string(count);
  std::printf("%s,\"jobs\":%d,\"running\":%zu,\"ack_p50_ms\":%.2f,\"ack_p99_ms\":%.2f%s}\n",
              begin_line("cancels").c_str(), n_jobs, running.size(), quantile(times_ms, 0.5),
              quantile(times_ms, 0.99), ended.c_str());
}

void cache_hits(const std::filesystem::path& folder, int size) {
  const int n_hits = size > 0 ? size : 1'000;
  const ServerProcess server(folder);
  const auto stub = v1::JobService::NewStub(server.connect());
  TestWorker worker(server, {"thermal"});
  v1::JobSpec spec;
  spec.mutable_thermal()->set_deck("deck");
  v1::Input& input = *spec.add_inputs();
  input.set_slot("deck/CONTROL");
  input.set_digest(worker.digest());
  input.set_size_bytes(worker.size_bytes());
  submit(*stub, {spec});
  for (const v1::Grant& grant : worker.acquire(1)) {
    worker.start(grant.attempt());
    worker.succeed(grant.attempt());
  }
  const double before = processor_seconds(server.pid());
  std::vector<double> times_ms;
  int taken = 0;
  for (int i = 0; i < n_hits; ++i) {
    const auto start = Clock::now();
    const auto submitted = submit(*stub, {spec});
    times_ms.push_back(1e3 * seconds_since(start));
    if (get(*stub, submitted.job_ids(0)).state() == v1::JOB_STATE_SUCCEEDED) ++taken;
  }
  const double processor = processor_seconds(server.pid()) - before;
  std::printf(
      "%s,\"hits\":%d,\"of\":%d,\"p50_ms\":%.2f,\"p99_ms\":%.2f,\"server_processor_us_each\":"
      "%.0f}\n",
      begin_line("hits").c_str(), taken, n_hits, quantile(times_ms, 0.5), quantile(times_ms, 0.99),
      1e6 * processor / n_hits);
  if (taken != n_hits) throw std::runtime_error("a submission did not take the result");
}

void long_queue(const std::filesystem::path& folder, int size) {
  const int n_jobs = size > 0 ? size : 1'000'000;
  ServerProcess server(folder);
  const auto fill = Clock::now();
  {
    const auto stub = v1::JobService::NewStub(server.connect());
    for (int first = 0; first < n_jobs; first += 1'000) {
      std::vector<v1::JobSpec> specs;
      for (int i = first; i < std::min(first + 1'000, n_jobs); ++i) {
        specs.push_back(noop("user" + std::to_string(i % 100) + "-" + std::to_string(i)));
        specs.back().set_priority(-(i % 7));
      }
      submit(*stub, specs);
    }
  }
  const double filled_seconds = seconds_since(fill);
  const double full_mib = memory_mib(server.pid(), "VmHWM");
  const double start_seconds = server.restart();
  const double started_mib = memory_mib(server.pid(), "VmHWM");
  const double idle_before = processor_seconds(server.pid());
  std::this_thread::sleep_for(std::chrono::seconds(5));
  const double idle_share = (processor_seconds(server.pid()) - idle_before) / 5.0;
  const auto stub = v1::JobService::NewStub(server.connect());
  std::vector<double> times_ms;
  std::string page;
  for (int i = 0; i < 1'000; ++i) {
    v1::ListJobsRequest request;
    if (i % 2 == 0)
      request.mutable_filter()->set_name_prefix("user" + std::to_string(i % 100) + "-");
    else
      request.set_page_token(page);
    grpc::ClientContext context;
    v1::ListJobsResponse response;
    const auto start = Clock::now();
    const grpc::Status status = stub->ListJobs(&context, request, &response);
    times_ms.push_back(1e3 * seconds_since(start));
    if (!status.ok()) throw std::runtime_error("ListJobs: " + status.error_message());
    if (i % 2 == 1) page = response.next_page_token();
  }
  std::printf(
      "%s,\"jobs\":%d,\"fill_s\":%.0f,\"start_s\":%.2f,\"list_p50_ms\":%.2f,\"list_p99_ms\":%.2f,"
      "\"filled_mib\":%.0f,\"started_mib\":%.0f,\"listed_mib\":%.0f,"
      "\"idle_processor_percent\":%.1f}\n",
      begin_line("queue").c_str(), n_jobs, filled_seconds, start_seconds, quantile(times_ms, 0.5),
      quantile(times_ms, 0.99), full_mib, started_mib, memory_mib(server.pid(), "VmHWM"),
      100.0 * idle_share);
}

void soak(const std::filesystem::path& folder, int size) {
  const int n_jobs = size > 0 ? size : 72'000;
  constexpr int kGroup = 200;
  const ServerProcess server(folder, {"--garbage-interval", "1"});
  const auto stub = v1::JobService::NewStub(server.connect());
  TestWorker worker(server);
  const auto begin = Clock::now();
  std::vector<double> memory;
  std::vector<int> files;
  for (int done = 0; done < n_jobs; done += kGroup) {
    const auto submitted = submit(*stub, std::vector<v1::JobSpec>(kGroup, noop()));
    for (const v1::Grant& grant : worker.acquire(kGroup)) {
      worker.start(grant.attempt());
      worker.succeed(grant.attempt());
    }
    grpc::ClientContext context;
    v1::DeleteJobsRequest request;
    *request.mutable_job_ids() = submitted.job_ids();
    v1::DeleteJobsResponse response;
    const grpc::Status status = stub->DeleteJobs(&context, request, &response);
    if (!status.ok()) throw std::runtime_error("DeleteJobs: " + status.error_message());
    memory.push_back(memory_mib(server.pid(), "VmRSS"));
    files.push_back(open_files(server.pid()));
  }
  // The slope of the last three quarters, when caches are warm.
  const std::size_t first = memory.size() / 4;
  double sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0;
  for (std::size_t i = first; i < memory.size(); ++i) {
    const double x = static_cast<double>(i) * kGroup / 72'000.0;
    sum_x += x, sum_y += memory[i], sum_xx += x * x, sum_xy += x * memory[i];
  }
  const auto n = static_cast<double>(memory.size() - first);
  std::string course;  // of the memory, in eighths of the run
  for (std::size_t i = 1; i <= 8; ++i) {
    char text[32];
    std::snprintf(text, sizeof text, "%s%.1f", i > 1 ? "," : "", memory[memory.size() * i / 8 - 1]);
    course += text;
  }
  std::printf(
      "%s,\"jobs\":%d,\"seconds\":%.0f,\"first_mib\":%.1f,\"warm_mib\":%.1f,\"last_mib\":%.1f,"
      "\"mib\":[%s],\"mib_per_72000_jobs\":%.2f,\"files_first\":%d,\"files_last\":%d}\n",
      begin_line("soak").c_str(), n_jobs, seconds_since(begin), memory.front(), memory[first],
      memory.back(), course.c_str(), (n * sum_xy - sum_x * sum_y) / (n * sum_xx - sum_x * sum_x),
      files.front(), files.back());
}

}  // namespace quasi::bench
