#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "workers/daemon/attempt/attempt_machine.hpp"
#include "workers/daemon/attempt/attempt_store.hpp"
#include "workers/daemon/attempt/checkpoint_shipper.hpp"
#include "workers/daemon/attempt/engine_launch.hpp"
#include "workers/daemon/attempt/input_cache.hpp"
#include "workers/daemon/attempt/log_shipper.hpp"
#include "workers/daemon/attempt/publication.hpp"
#include "workers/daemon/attempt/worker_ports.hpp"
#include "workers/daemon/devices/devices.hpp"
#include "workers/daemon/ports/server_link.hpp"
#include "workers/daemon/ports/spawner.hpp"
#include "workers/daemon/worker_log.hpp"

namespace quasi {

/// Carries out the acts of one AttemptMachine on files, child and server. It lives on the thread of
/// the event loop. Answers that arrive after its destruction are dropped.
class AttemptRunner : public std::enable_shared_from_this<AttemptRunner>, private ChildEvents {
 public:
  struct Hooks {
    std::function<bool()> in_contact;  ///< true while the lease is valid and reports may be sent
    std::function<void()> contacted;   ///< called when the server has answered
    std::function<void(const std::string& reason)> device_stuck;
    std::function<void(const Ending&)> child_ended;  ///< lets the device board record the ending
    std::function<bool()> has_stray;  ///< true while an engine that outlived SIGKILL still runs
  };

  AttemptRunner(const WorkerPorts& ports, const EngineSettings& settings, v1::Grant grant,
                std::vector<WorkerDevice> devices, Hooks hooks);

  /// Records the grant and starts the attempt. @throws StorageFailure if the grant cannot be
  /// recorded; then nothing was started.
  void begin();
  /// Records the grant as begin() does, but starts no engine and reports `ending`.
  void decline(Ending ending);
  /// Continues an attempt that an earlier daemon left behind. Its child is gone.
  void recover(const AttemptStore::Recovered& left);

  /// Carries out a directive of the server.
  void obey(v1::Directive directive);
  /// @param may_end  an attempt whose time limit ends within the drain's time goes on to its end
  void drain(bool may_end) { perform(machine_.drain(now(), may_end)); }
  void orphaned() { perform(machine_.orphaned(now())); }
  void stop_now() { perform(machine_.stop_now(now())); }
  void checkpoint_now() { perform(machine_.checkpoint_now()); }

  /// Handles the deadlines of the attempt that have passed.
  void tick();
  std::optional<MonotonicTime> next_deadline() const;

  bool over() const { return over_; }
  bool child_alive() const { return machine_.child_alive(); }
  /// Returns true while inputs are fetched or a checked start is under way.
  bool may_still_start() const {
    return machine_.state() == AttemptMachine::State::kStaging ||
           machine_.state() == AttemptMachine::State::kStarting;
  }
  /// Returns true if the directory was put aside rather than removed.
  bool kept() const { return kept_; }
  std::uint64_t fence() const { return grant_.attempt().fence(); }
  const v1::Grant& grant() const { return grant_; }
  const std::vector<WorkerDevice>& devices() const { return devices_; }
  const AttemptMachine& machine() const { return machine_; }
  /// Process group of the engine; 0 if none runs.
  std::int64_t process_group() const { return child_ ? child_->identity().pid : 0; }
  /// Notes memory that the engine was measured to hold on one GPU.
  void note_gpu_bytes(std::int64_t bytes) { peak_gpu_bytes_ = std::max(peak_gpu_bytes_, bytes); }
  std::int64_t peak_gpu_bytes() const { return peak_gpu_bytes_; }
  /// Takes the newest progress that has not been taken yet.
  std::optional<v1::Progress> take_progress();

 private:
  void on_report(const v1::EngineReport& report) override;
  void on_garbage() override;
  void on_exit(const ChildExit& exit, const ChildUsage& usage) override;

  MonotonicTime now() const { return ports_.clock.now(); }
  nlohmann::json facts() const;
  void make_shippers();
  void perform(AttemptMachine::Acts acts);
  void act(Act next);
  void stage();
  void spawn();
  void announce();
  void announce_answered(const grpc::Status& status);
  void flush();
  void publish();
  void uploaded(const grpc::Status& status);
  void report();
  void report_answered(const grpc::Status& status);
  void finish_over(bool keep);
  bool send(const v1::EngineCommand& command);
  v1::CompleteAttemptRequest completion() const;
  void offer_newest_checkpoint();

  WorkerPorts ports_;
  const EngineSettings& settings_;
  v1::Grant grant_;
  std::vector<WorkerDevice> devices_;
  Hooks hooks_;
  AttemptPaths paths_;
  AttemptMachine machine_;
  std::shared_ptr<LogShipper> log_shipper_;
  std::shared_ptr<CheckpointShipper> checkpoints_;
  std::unique_ptr<EngineChild> child_;
  std::deque<Act> todo_;
  bool performing_ = false;
  bool over_ = false;
  bool kept_ = false;
  std::shared_ptr<std::atomic<bool>> abandon_ = std::make_shared<std::atomic<bool>>(false);
  std::optional<v1::Progress> progress_;
  std::string engine_version_;
  std::optional<v1::Isolation> isolation_;  ///< Walls around the engine, as the engine found them.
  MonotonicTime spawned_at_{};
  double wall_seconds_ = 0.0;
  ChildUsage usage_;
  std::int64_t peak_gpu_bytes_ = 0;
  v1::CompleteAttemptRequest publication_;
  MonotonicTime next_pump_{};
  std::optional<MonotonicTime> restage_at_;
  std::optional<MonotonicTime> republish_at_;
};

}  // namespace quasi
