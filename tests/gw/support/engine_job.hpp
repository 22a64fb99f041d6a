#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

namespace quasi::gw::test {

namespace fs = std::filesystem;

/// Returns the path of the engine beside this test; the file may be absent.
inline fs::path engine_program() {
  return fs::canonical("/proc/self/exe").parent_path() / "quasi-engine";
}

/// A running or ended engine.
class EngineProcess {
 public:
  explicit EngineProcess(pid_t pid) : pid_(pid) {}

  bool has_ended() {
    if (!ended_) ended_ = waitpid(pid_, &status_, WNOHANG) == pid_;
    return ended_;
  }
  void wait() {
    if (!ended_) ended_ = waitpid(pid_, &status_, 0) == pid_;
  }
  /// Waits for the end and returns the largest resident set that was seen until then, MiB.
  double wait_for_peak_mib() {
    double peak_mib = 0.0;
    while (!has_ended()) {
      std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
      for (std::string line; std::getline(status, line);)
        if (line.starts_with("VmHWM:"))
          peak_mib = std::max(peak_mib, std::stod(line.substr(6)) / 1024.0);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return peak_mib;
  }
  /// Sends SIGKILL unless the process has ended; true if the signal ended it.
  bool kill_and_wait() {
    if (!ended_) kill(pid_, SIGKILL);
    wait();
    return WIFSIGNALED(status_);
  }
  /// Exit code, or −1 without one.
  int exit_code() const { return ended_ && WIFEXITED(status_) ? WEXITSTATUS(status_) : -1; }

 private:
  pid_t pid_;
  int status_ = 0;
  bool ended_ = false;
};

/// Finished checkpoint files and the times at which they were written.
using Checkpoints = std::map<fs::path, fs::file_time_type>;

/// One deck that the engine runs into folders of one directory.
struct EngineJob {
  fs::path directory, deck;

  fs::path log() const { return directory / "log"; }

  EngineProcess start(const std::string& folder) const {
    const std::string program = engine_program().string(), output = (directory / folder).string(),
                      log_file = log().string();
    fs::remove(log());  // Its lines must be those of this run.
    const pid_t child = fork();
    if (child == 0) {
      if (!freopen("/dev/null", "w", stdout) || !freopen(log_file.c_str(), "w", stderr)) _exit(126);
      execl(program.c_str(), "quasi-engine", "run", "gw", deck.c_str(), "--device", "cpu", "-d",
            output.c_str(), nullptr);
      _exit(127);
    }
    return EngineProcess(child);
  }

  /// Runs to the end and returns the exit code.
  int run(const std::string& folder) const {
    EngineProcess engine = start(folder);
    engine.wait();
    return engine.exit_code();
  }

  std::string log_text() const {
    std::ifstream in(log());
    return std::string(std::istreambuf_iterator<char>(in), {});
  }

  /// The summary without the time that the run took.
  std::string result(const std::string& folder) const {
    std::ifstream in(directory / folder / "summary.json");
    auto summary = nlohmann::json::parse(in).at("summary");
    summary.erase("seconds");
    return summary.dump();
  }

  Checkpoints checkpoints(const std::string& folder) const {
    Checkpoints files;
    std::error_code none;  // The engine may be killed before it makes the folder.
    for (const auto& entry : fs::directory_iterator(directory / folder / "checkpoint", none)) {
      std::error_code replaced;
      const auto written = entry.last_write_time(replaced);
      if (entry.path().extension() != ".tmp" && !replaced) files[entry.path()] = written;
    }
    return files;
  }
};

}  // namespace quasi::gw::test
