#pragma once

#include <grpcpp/channel.h>
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace quasi::bench {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start);

/// Field of /proc/PID/status, in MiB, e.g. VmRSS or VmHWM.
double memory_mib(pid_t pid, const std::string& field);

/// Lets the peak of a process's memory, VmHWM, begin anew at its present size.
void forget_peak(pid_t pid);

/// Processor time of a process, user and system, in seconds. Unlike wall time it hardly depends on
/// other programs.
double processor_seconds(pid_t pid);

/// Number of open files of a process.
int open_files(pid_t pid);

/// The value below which a share of the values lies; sorts the values. 0 without values.
double quantile(std::vector<double>& values, double share);

/// Begins each JSON line with the name of the case and the load of the machine in the last minute.
std::string begin_line(const std::string& name);

/// quasi-server as a process of its own, with limits of rates far above those of the benchmarks. It
/// lies beside this program and keeps its data in `directory`/data.
class ServerProcess {
 public:
  /// Starts the server and returns once it answers. @throws std::runtime_error
  ServerProcess(std::filesystem::path directory, std::vector<std::string> flags = {});
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  /// Ends the server by SIGTERM and starts it again. @return seconds from its start to its answer
  double restart();
  pid_t pid() const { return pid_; }
  const std::filesystem::path& directory() const { return directory_; }
  std::string address() const { return "unix:" + (directory_ / "server.sock").string(); }
  /// A channel with a connection of its own, as of another program.
  std::shared_ptr<grpc::Channel> connect() const;

 private:
  double start();
  void stop();

  std::filesystem::path directory_;
  std::vector<std::string> flags_;
  pid_t pid_ = 0;
};

}  // namespace quasi::bench
