// The server alone, as a process of its own on a Unix socket: durable submissions, and a large
// result fetched over a connection that is cut twice. One JSON line a case.
//
//   service_server [submits per caller = 200] [GiB to fetch = 0]

#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "proto/wire/channel.hpp"
#include "proto/wire/chunks.hpp"
#include "proto/wire/digest.hpp"
#include "quasi/v1/job_service.grpc.pb.h"

extern char** environ;

namespace quasi {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Field of /proc/PID/status, in MiB.
double memory_mib(pid_t pid, const std::string& field) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(field + ":")) return std::stod(line.substr(field.size() + 1)) / 1024.0;
  return 0.0;
}

/// Processor time of a process, user and system. Unlike wall time it hardly depends on what else
/// runs.
double processor_seconds(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(in, text);
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string skipped;
  for (int i = 3; i < 14; ++i) fields >> skipped;
  double user = 0.0, system = 0.0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

pid_t start_server(const std::string& directory, const std::string& address) {
  const std::string program =
      (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "quasi-server").string();
  std::vector<std::string> words = {program,   "--data-directory",    directory, "--listen",
                                    address,   "--enable-test-work",  "true",    "--log-level",
                                    "warning", "--storage-low-bytes", "0"};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t pid = 0;
  if (posix_spawn(&pid, program.c_str(), nullptr, nullptr, arguments.data(), environ) != 0) {
    std::cerr << "cannot start " << program << '\n';
    std::exit(1);
  }
  return pid;
}

void submits(const std::string& address, pid_t server, int callers, int each) {
  std::atomic<int> failures{0};
  std::vector<double> latency_ms;
  std::vector<std::vector<double>> per_caller(static_cast<std::size_t>(callers));
  std::vector<std::thread> threads;
  const auto channel = wire::open_channel(address);
  channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(30));
  const double processor_before = processor_seconds(server);
  const auto start = Clock::now();
  for (int caller = 0; caller < callers; ++caller) {
    threads.emplace_back([&, caller] {
      const auto stub = v1::JobService::NewStub(channel);
      for (int i = 0; i < each; ++i) {
        grpc::ClientContext context;
        v1::SubmitJobsRequest request;
        request.set_request_id(wire::make_uuid());
        request.add_jobs()->mutable_test()->mutable_noop();
        v1::SubmitJobsResponse response;
        const auto begin = Clock::now();
        if (!stub->SubmitJobs(&context, request, &response).ok()) ++failures;
        per_caller[static_cast<std::size_t>(caller)].push_back(1e3 * seconds_since(begin));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double seconds = seconds_since(start);
  const double processor = processor_seconds(server) - processor_before;
  for (const auto& list : per_caller) latency_ms.insert(latency_ms.end(), list.begin(), list.end());
  std::sort(latency_ms.begin(), latency_ms.end());
  const auto at = [&](double share) {
    return latency_ms[static_cast<std::size_t>(share * static_cast<double>(latency_ms.size() - 1))];
  };
  std::printf(
      "{\"case\":\"durable_submits\",\"callers\":%d,\"submits\":%zu,\"failures\":%d,"
      "\"per_second\":%.0f,\"p50_ms\":%.2f,\"p99_ms\":%.2f,"
      "\"server_processor_us_each\":%.0f}\n",
      callers, latency_ms.size(), failures.load(), static_cast<double>(latency_ms.size()) / seconds,
      at(0.5), at(0.99), 1e6 * processor / static_cast<double>(latency_ms.size()));
}

void fetch(const std::string& address, const std::string& directory, pid_t server,
           std::uint64_t bytes) {
  const std::string source = directory + "/source.bin";
  {
    std::ofstream out(source, std::ios::binary);
    out.seekp(static_cast<std::streamoff>(bytes - 1));
    out.put('q');
  }
  const auto file = wire::digest_file(source);
  auto start = Clock::now();
  const grpc::Status up =
      wire::upload_file(wire::open_channel(address), source, file.digest, file.size_bytes);
  const double up_seconds = seconds_since(start);
  if (!up.ok()) {
    std::cerr << "upload: " << up.error_message() << '\n';
    std::exit(1);
  }
  std::filesystem::remove(source);
  const double before_mib = memory_mib(server, "VmRSS");
  const std::string target = directory + "/result.bin";
  grpc::Status status;
  start = Clock::now();
  // Two processes of a client that were killed on the way, and the third one that ends.
  for (int part = 1; part <= 3; ++part) {
    std::uint64_t done = 0;
    status = wire::download_file(
        wire::open_channel(address), file.digest, file.size_bytes, target,
        {.on_progress = [&](std::uint64_t now, std::uint64_t) { done = now; },
         .cancelled =
             [&] { return part < 3 && done > static_cast<std::uint64_t>(part) * bytes / 3; }});
  }
  const double seconds = seconds_since(start);
  const bool right = status.ok() && wire::digest_file(target).digest == file.digest;
  std::printf(
      "{\"case\":\"fetch_cut_twice\",\"bytes\":%llu,\"digest_right\":%s,"
      "\"upload_mb_per_s\":%.0f,\"fetch_mb_per_s\":%.0f,\"server_rss_before_mib\":%.1f,"
      "\"server_peak_mib\":%.1f,\"server_growth_mib\":%.1f}\n",
      static_cast<unsigned long long>(bytes), right ? "true" : "false",
      static_cast<double>(bytes) / 1e6 / up_seconds, static_cast<double>(bytes) / 1e6 / seconds,
      before_mib, memory_mib(server, "VmHWM"), memory_mib(server, "VmHWM") - before_mib);
  if (!right) std::exit(1);
}

}  // namespace
}  // namespace quasi

int main(int argc, char** argv) {
  const int each = argc > 1 ? std::atoi(argv[1]) : 200;
  const double gib = argc > 2 ? std::atof(argv[2]) : 0.0;
  const std::string directory =
      std::filesystem::temp_directory_path() / ("quasi-bench-" + std::to_string(getpid()));
  if (!std::filesystem::create_directory(directory)) {
    std::fprintf(stderr, "%s is there already; remove it\n", directory.c_str());
    return 1;
  }
  const std::string address = "unix:" + directory + "/server.sock";
  const pid_t server = quasi::start_server(directory + "/data", address);
  quasi::submits(address, server, 64, each);
  if (gib > 0.0)
    quasi::fetch(address, directory, server,
                 static_cast<std::uint64_t>(gib * static_cast<double>(1ULL << 30)));
  kill(server, SIGTERM);
  waitpid(server, nullptr, 0);
  std::filesystem::remove_all(directory);
}
