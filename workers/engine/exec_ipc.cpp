// Runs quasi-engine under a worker daemon: one attempt, which gets its commands over a socket pair.

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "proto/wire/packet_socket.hpp"
#include "quasi/v1/engine.pb.h"
#include "workers/backend/error.hpp"
#include "workers/cage/cage.hpp"
#include "workers/engine/exec.hpp"
#include "workers/engine/rank_devices.hpp"
#include "workers/engine/rank_launch.hpp"
#include "workers/engine/run_task.hpp"
#include "workers/engine/test_work.hpp"
#include "workers/engine/utf8.hpp"
#include "workers/io/input_path.hpp"

namespace quasi {
namespace {

static_assert(static_cast<int>(ExitStatus::kUnexpected) == v1::ENGINE_EXIT_UNEXPECTED);
static_assert(static_cast<int>(ExitStatus::kUsage) == v1::ENGINE_EXIT_USAGE);
static_assert(static_cast<int>(ExitStatus::kInvalidInput) == v1::ENGINE_EXIT_INVALID_INPUT);
static_assert(static_cast<int>(ExitStatus::kNumerical) == v1::ENGINE_EXIT_NUMERICAL);
static_assert(static_cast<int>(ExitStatus::kOutOfMemory) == v1::ENGINE_EXIT_OUT_OF_MEMORY);
static_assert(static_cast<int>(ExitStatus::kDeviceFault) == v1::ENGINE_EXIT_DEVICE_FAULT);
static_assert(static_cast<int>(ExitStatus::kCancelled) == v1::ENGINE_EXIT_CANCELLED);
static_assert(static_cast<int>(ExitStatus::kStorage) == v1::ENGINE_EXIT_STORAGE);
static_assert(static_cast<int>(ExitStatus::kBackendAbsent) == v1::ENGINE_EXIT_BACKEND_ABSENT);

std::atomic<bool> cancel_wanted{false};
std::atomic<bool> checkpoint_wanted_now{false};

constexpr std::size_t kMaxLineBytes = 32 * 1024, kMaxMessageBytes = 4000;

/// Sends the task's reports as packets to the daemon. Progress is sent at most ten times a second
/// and dropped when the daemon does not keep up. All other messages wait for room.
class IpcProgress : public Progress {
 public:
  IpcProgress(PacketSocket& daemon, std::filesystem::path checkpoints, Ranks& ranks)
      : daemon_(daemon), checkpoints_(std::move(checkpoints)), ranks_(ranks) {}

  void metric(std::string_view name, double value) override {
    if (!std::isfinite(value)) return;
    const std::lock_guard lock(mutex_);
    (*state_.mutable_metrics())[std::string(name)] = value;
  }
  void log(std::string_view line) override {
    v1::EngineReport report;
    report.mutable_log()->set_line(as_utf8(line, kMaxLineBytes));
    send(report);
  }
  void checkpoint_ready(const std::string& path, std::int64_t step) override {
    // Only files in the job's own checkpoint directory are sent. The runs of a convergence study
    // keep theirs in subdirectories.
    if (std::filesystem::path(path).parent_path() != checkpoints_) return;
    v1::EngineReport report;
    report.mutable_checkpoint_ready()->set_path(path);
    report.mutable_checkpoint_ready()->set_step(step);
    send(report);
  }
  bool cancelled() const override { return cancel_wanted || ranks_.peer_failed(); }
  bool checkpoint_wanted() override { return checkpoint_wanted_now.exchange(false); }

  void send(const v1::EngineReport& report) {
    const std::lock_guard lock(mutex_);
    if (daemon_.send(report, PacketSocket::Wait::kYes) == PacketSocket::Sent::kClosed)
      cancel_wanted = true;  // the daemon is gone, so no result can be reported
  }

 protected:
  void on_report(std::string_view phase, std::int64_t done, std::int64_t total) override {
    const auto now = std::chrono::steady_clock::now();
    const std::lock_guard lock(mutex_);
    const bool milestone = state_.phase() != phase || done >= total;
    if (!milestone && now - last_sent_ < std::chrono::milliseconds(100)) return;
    state_.set_phase(std::string(phase));
    state_.set_done(done);
    state_.set_total(total);
    v1::EngineReport report;
    *report.mutable_progress() = state_;
    daemon_.send(report, PacketSocket::Wait::kNo);
    last_sent_ = now;
  }

 private:
  PacketSocket& daemon_;
  const std::filesystem::path checkpoints_;
  Ranks& ranks_;
  std::mutex mutex_;
  v1::Progress state_;
  std::chrono::steady_clock::time_point last_sent_{};
};

/// Progress of a rank other than rank 0: it reports nothing and only watches for the failure of
/// other ranks.
class SilentProgress : public Progress {
 public:
  explicit SilentProgress(Ranks& ranks) : ranks_(ranks) {}
  void metric(std::string_view, double) override {}
  void log(std::string_view) override {}
  void checkpoint_ready(const std::string&, std::int64_t) override {}
  bool cancelled() const override { return cancel_wanted || ranks_.peer_failed(); }
  bool checkpoint_wanted() override { return false; }

 protected:
  void on_report(std::string_view, std::int64_t, std::int64_t) override {}

 private:
  Ranks& ranks_;
};

/// Walls around this process: those that quasi-cage built before it became the engine, and the one
/// that the engine adds. From here on nothing of the deck has been read.
struct Confinement {
  bool whole = false;
  std::string summary;
};

Confinement close_cage() {
  const char* summary = std::getenv("QUASI_CAGE");
  if (summary == nullptr) return {false, "not in a cage"};
  const char* whole = std::getenv("QUASI_CAGE_WHOLE");
  const CageWall processes = deny_new_processes();
  return {processes.stands && whole != nullptr && std::string_view(whole) == "1",
          std::string(summary) + ", processes " + (processes.stands ? "closed" : "open") + " (" +
              processes.detail + ")"};
}

RunOptions run_options(const v1::EngineStart& start, Ranks& ranks) {
  // The deck belongs to another user, so it may name files among its inputs alone. The daemon names
  // these directories relative to the attempt's directory.
  confine_inputs({"in", start.output_directory(), start.checkpoint_directory()});
  RunOptions options{.deck = {.path = start.deck_path(), .settings = {}},
                     .devices = {},
                     .output_directory = start.output_directory(),
                     .checkpoint_directory = start.checkpoint_directory(),
                     .memory_budget_bytes = static_cast<std::int64_t>(start.memory_budget_bytes()),
                     .exports = {start.exports().begin(), start.exports().end()},
                     .ranks = &ranks};
  for (const auto& setting : start.settings())
    options.deck.settings.push_back({setting.key(), setting.value()});
  std::string names;
  for (const auto& name : start.devices()) names += (names.empty() ? "" : ",") + name;
  if (names.empty()) throw InvalidInput("the daemon named no device");
  options.devices = devices_of_rank(names, ranks);
  return options;
}

void run_test(const v1::EngineStart& start, PacketSocket& daemon, Progress& progress,
              const Ranks& ranks) {
  const TestWorkSite site{.output_directory = start.output_directory(),
                          .checkpoint_directory = start.checkpoint_directory(),
                          .attempt_number = start.attempt_number(),
                          .daemon = daemon};
  const nlohmann::json document{{"schema", "quasi.run.v1"},
                                {"kind", "test"},
                                {"version", QUASI_VERSION},
                                {"ranks", ranks.size()},
                                {"summary", run_test_work(start.test(), site, progress)}};
  const auto path = site.output_directory / "summary.json";
  std::ofstream out(path);
  out << document.dump(2) << '\n';
  if (!out.flush()) throw StorageError("cannot write '" + path.string() + "'; is the disk full?");
}

v1::FailureReason failure_reason(ExitStatus status, const v1::EngineStart& start) {
  switch (status) {
    case ExitStatus::kInvalidInput:
      return v1::FAILURE_REASON_INVALID_INPUT;
    case ExitStatus::kNumerical:
      return v1::FAILURE_REASON_NUMERICAL;
    case ExitStatus::kOutOfMemory:
      return start.devices_size() > 0 && start.devices(0) != "cpu" ? v1::FAILURE_REASON_GPU_OOM
                                                                   : v1::FAILURE_REASON_HOST_OOM;
    case ExitStatus::kDeviceFault:
      return v1::FAILURE_REASON_GPU_FAULT;
    case ExitStatus::kStorage:
      return v1::FAILURE_REASON_STORAGE;
    default:
      return v1::FAILURE_REASON_ENGINE_ERROR;
  }
}

/// Receives commands of the daemon until either side closes the socket.
void listen(PacketSocket& daemon, const std::atomic<bool>& finished) {
  while (true) {
    v1::EngineCommand command;
    const auto received = daemon.receive(command, PacketSocket::Wait::kYes);
    if (finished) return;
    // A daemon that is gone or sends invalid packets cannot take a result. The engine exits to free
    // its slot.
    if (received != PacketSocket::Received::kMessage)
      _exit(static_cast<int>(ExitStatus::kCancelled));
    if (command.has_cancel()) cancel_wanted = true;
    if (command.has_checkpoint_now()) checkpoint_wanted_now = true;
  }
}

/// Reads the first message of the daemon, which describes the attempt.
std::optional<v1::EngineStart> first_message(PacketSocket& daemon) {
  v1::EngineCommand first;
  if (daemon.receive(first, PacketSocket::Wait::kYes) != PacketSocket::Received::kMessage ||
      !first.has_start())
    return {};
  return first.start();
}

void hear_signals() {
  std::signal(SIGTERM, [](int) { cancel_wanted = true; });
  std::signal(SIGINT, SIG_IGN);  // the signal is meant for the daemon, which decides
}

/// Runs the attempt in a single process or in rank 0, which speaks to the daemon.
int run_rank_0(PacketSocket& daemon, const v1::EngineStart& start, Ranks& ranks) {
  const Confinement confinement = close_cage();
  IpcProgress progress(daemon, start.checkpoint_directory(), ranks);
  v1::EngineReport report;
  report.mutable_started()->set_version(QUASI_VERSION);
  report.mutable_started()->set_cage(confinement.summary);
  report.mutable_started()->set_caged(confinement.whole);
  progress.send(report);

  std::atomic<bool> finished{false};
  std::thread listener([&] { listen(daemon, finished); });
  std::string message;
  ExitStatus status = guarded(
      [&] {
        if (start.kind() == "test")
          run_test(start, daemon, progress, ranks);
        else
          run_task(start.kind(), run_options(start, ranks), progress);
      },
      &message);
  const Ranks::Ending ending = ranks.end(static_cast<int>(status), message);
  status = static_cast<ExitStatus>(ending.status);
  message = (ranks.size() > 1 ? "rank " + std::to_string(ending.rank) + ": " : "") + ending.message;
  if (status == ExitStatus::kOk) {
    report.mutable_result_ready();
  } else {
    report.mutable_failed()->set_reason(failure_reason(status, start));
    report.mutable_failed()->set_message(as_utf8(message, kMaxMessageBytes));
    std::cerr << "error: " << message << '\n';
  }
  progress.send(report);
  finished = true;
  shutdown(daemon.descriptor(), SHUT_RD);
  listener.join();
  return static_cast<int>(status);
}

/// Runs the attempt in a rank other than rank 0. Test work is done by rank 0 alone.
int run_other_rank(const v1::EngineStart& start, Ranks& ranks) {
  close_cage();  // as on rank 0, which reports
  SilentProgress progress(ranks);
  std::string message;
  const ExitStatus status = guarded(
      [&] {
        if (start.kind() != "test") run_task(start.kind(), run_options(start, ranks), progress);
      },
      &message);
  return ranks.end(static_cast<int>(status), message).status;
}

/// Returns on every rank the start message that the daemon sent to rank 0. Collective.
v1::EngineStart shared_start(v1::EngineStart start, Ranks& ranks) {
  std::string bytes = start.SerializeAsString();
  std::uint64_t size = bytes.size();
  ranks.broadcast(&size, sizeof size, 0);
  bytes.resize(size);
  ranks.broadcast(bytes.data(), size, 0);
  start.ParseFromString(bytes);
  return start;
}

}  // namespace

int exec_attempt(const ExecOptions& options) {
  // This follows the cage, because its change of credentials clears the setting.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (options.parent != 0 && getppid() != options.parent)
    return static_cast<int>(ExitStatus::kCancelled);  // the daemon died before prctl took effect
  hear_signals();
  fcntl(options.ipc_descriptor, F_SETFD, FD_CLOEXEC);

  PacketSocket daemon(options.ipc_descriptor);
  const auto start = first_message(daemon);
  if (!start) {
    std::cerr << "error: quasi-engine exec can only be started by quasi-worker; descriptor "
              << options.ipc_descriptor << " brought no start message\n";
    return static_cast<int>(ExitStatus::kUsage);
  }
  return start->ranks() > 1 ? launch_ranks(daemon, *start) : run_rank_0(daemon, *start, one_rank());
}

int exec_rank(const std::string& socket_path) {
  prctl(PR_SET_PDEATHSIG,
        SIGKILL);  // so that the rank dies with the launcher, which dies with exec_attempt
  hear_signals();
  DaemonContact contact;
  std::unique_ptr<Ranks> ranks;
  std::string message;
  const ExitStatus status = guarded(
      [&] {
        ranks = join_ranks();
        if (!ranks) throw InvalidInput("quasi-engine rank can only be started by an MPI launcher");
        if (ranks->leads()) contact = receive_contact(socket_path);
        contact.start = shared_start(std::move(contact.start), *ranks);
      },
      &message);
  if (status != ExitStatus::kOk) {
    const auto ending = ranks ? ranks->end(static_cast<int>(status), message)
                              : Ranks::Ending{static_cast<int>(status), 0, message};
    if (!ranks || ranks->leads()) std::cerr << "error: " << ending.message << '\n';
    return ending.status;
  }
  return ranks->leads() ? run_rank_0(contact.daemon, contact.start, *ranks)
                        : run_other_rank(contact.start, *ranks);
}

std::vector<std::string> exec_kinds() { return {"test"}; }

}  // namespace quasi
