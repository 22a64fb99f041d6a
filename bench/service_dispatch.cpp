// How long an idle worker takes: from before SubmitJobs of a no-op is sent until the client hears
// that its engine runs (RUNNING), and until it hears that it has succeeded. Real server, worker and
// engine processes, one job at a time. Client and worker use a Unix socket, or with `tls` TCP on
// 127.0.0.1 with TLS 1.3 and tokens.
//
// Usage: service_dispatch [jobs, 200] [unix | tls]. Prints one JSON line.

#include <grpcpp/client_context.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <thread>

#include "tests/service/support/people/tls_door.hpp"
#include "tests/service/support/service_fixture.hpp"

namespace quasi::test {
namespace {

using Clock = std::chrono::steady_clock;

/// When each job was heard to reach each state.
class Listener {
 public:
  explicit Listener(v1::JobService::Stub& jobs) : stream_(jobs.WatchJobs(&context_, {})) {
    thread_ = std::thread([this] {
      for (v1::WatchEvent event; stream_->Read(&event);) {
        if (!event.has_state_changed()) continue;
        const std::lock_guard lock(mutex_);
        heard_[event.job_id()][event.state_changed().to()] = Clock::now();
        changed_.notify_all();
      }
    });
  }
  ~Listener() {
    context_.TryCancel();
    thread_.join();
  }
  Clock::time_point when(const std::string& id, v1::JobState state) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(60),
                           [&] { return heard_[id].contains(state); }))
      throw std::runtime_error("job " + id + " was not heard to be " + v1::JobState_Name(state));
    return heard_[id][state];
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::WatchEvent>> stream_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::map<v1::JobState, Clock::time_point>> heard_;
  std::thread thread_;
};

double at(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const auto index = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5);
  return values[index];
}

int run(int n_jobs, bool tls) {
  Service service;
  const TlsDoor door(service.directory());
  if (tls) service.add_server_flags(door.server_flags(service.address()));
  service.start_server();
  std::unique_ptr<v1::JobService::Stub> caller;
  if (tls) {
    const std::string worker = door.token_file(service.channel(), "w", v1::ROLE_WORKER);
    service.start_worker("w", door.worker_flags(worker));
    caller = v1::JobService::NewStub(
        door.open(door.token_file(service.channel(), "ada", v1::ROLE_USER)));
  } else {
    service.start_worker("w");
    caller = v1::JobService::NewStub(service.channel());
  }
  service.wait_end(service.submit(noop()));  // both sides have started up
  Listener listener(*caller);
  service.wait_end(service.submit(noop()));
  std::vector<double> started_ms, ended_ms;
  for (int i = 0; i < n_jobs; ++i) {
    const auto begin = Clock::now();
    const std::string id = service.submit({noop()}, *caller).front();
    const auto milliseconds = [&](Clock::time_point time) {
      return std::chrono::duration<double, std::milli>(time - begin).count();
    };
    started_ms.push_back(milliseconds(listener.when(id, v1::JOB_STATE_RUNNING)));
    ended_ms.push_back(milliseconds(listener.when(id, v1::JOB_STATE_SUCCEEDED)));
  }
  std::printf(
      "{\"case\": \"service_dispatch\", \"door\": \"%s\", \"jobs\": %d, \"started_p50_ms\": %.1f, "
      "\"started_p99_ms\": "
      "%.1f, \"ended_p50_ms\": %.1f, \"ended_p99_ms\": %.1f}\n",
      tls ? "tls" : "unix", n_jobs, at(started_ms, 0.5), at(started_ms, 0.99), at(ended_ms, 0.5),
      at(ended_ms, 0.99));
  return 0;
}

}  // namespace
}  // namespace quasi::test

int main(int argc, char** argv) {
  try {
    return quasi::test::run(argc > 1 ? std::max(1, std::atoi(argv[1])) : 200,
                            argc > 2 && std::string(argv[2]) == "tls");
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 1;
  }
}
