#pragma once

// The engines of a simulated machine: what the work of their job says, step by step.

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "proto/wire/digest.hpp"
#include "tests/service/simulator/set_plan.hpp"
#include "tests/service/simulator/worker_machine.hpp"
#include "workers/daemon/error.hpp"

namespace quasi::sim {

/// One engine. It writes its files without crash points, because it is a process of its own.
class WorkerMachine::Engine : public EngineChild {
 public:
  Engine(WorkerMachine& machine, const LaunchPlan& plan, ChildEvents& events)
      : machine_(machine),
        root_(plan.working_directory),
        events_(events),
        pid_(++machine.next_pid_) {
    machine_.engines_.push_back(this);
  }
  ~Engine() override { std::erase(machine_.engines_, this); }

  ProcessIdentity identity() const override { return {pid_, 1}; }
  const std::vector<std::string>& devices() const { return devices_; }
  std::int64_t pid() const { return pid_; }
  bool is_gone() const { return is_gone_; }

  bool send(const v1::EngineCommand& command) override {
    if (command.has_start()) begin(command.start());
    if (command.has_cancel() && !is_stubborn())
      later(1, 400, [this] { leave(v1::ENGINE_EXIT_CANCELLED); });
    if (command.has_checkpoint_now() && is_stepping_) later(1, 600, [this] { write_checkpoint(); });
    return true;
  }
  void signal_group(int signal) override {
    if (signal != SIGKILL && is_stubborn()) return;
    const bool is_stuck =
        is_stubborn() && !machine_.around_.network.is_calm() && machine_.around_.dice.one_in(4);
    later(1, is_stuck ? 9'000 : 50, [this, signal] { die(signal); });
  }
  /// Ends the engine by a fault of its own.
  void crash() {
    machine_.around_.timeline.record("an engine of " + machine_.name_ + " crashes");
    machine_.around_.judge.note_engine_crash(grant_.job_id());
    later(0, 0, [this] { die(SIGSEGV); });
  }

 private:
  const v1::TestWork& work() const { return grant_.spec().test(); }
  bool is_stubborn() const { return work().has_hang(); }

  /// Runs an action unless the engine is gone by then. Once the faults have stopped, the story only
  /// has to end, so engines work five times as fast.
  void later(std::int64_t least_ms, std::int64_t most_ms, std::function<void()> action) {
    const std::int64_t speed = machine_.around_.network.is_calm() ? 5 : 1;
    machine_.later(machine_.around_.dice.draw(least_ms, most_ms) / speed,
                   [alive = std::weak_ptr<bool>(alive_), action = std::move(action)] {
                     if (alive.lock()) action();
                   });
  }

  void begin(const v1::EngineStart& start) {
    Judge& judge = machine_.around_.judge;
    grant_.ParseFromString(machine_.files_.read_file(root_ / "grant.pb").value_or(""));
    devices_.assign(grant_.device_ids().begin(), grant_.device_ids().end());
    check_slots();
    for (const v1::Input& input : grant_.spec().inputs()) {
      const auto bytes = machine_.files_.read_file(root_ / "in" / input.slot());
      if (!bytes || wire::sha256_hex(*bytes) != input.digest())
        judge.report_violation("I10", "an engine was started without the bytes of its input");
    }
    for (const auto& name : machine_.files_.list(root_ / start.checkpoint_directory()))
      if (name.starts_with("ckpt-"))
        next_step_ = std::max<std::int64_t>(next_step_, std::stoll(name.substr(5)) + 1);
    if (next_step_ <= grant_.checkpoint().step())
      judge.report_violation("I1", "an engine was started without the checkpoint of its grant");
    later(1, 300, [this] {
      v1::EngineReport report;
      report.mutable_started()->set_version("simulated");
      events_.on_report(report);
      later(1, 400, [this] { act(); });
    });
  }
  /// No device carries more engines than it has slots.
  void check_slots() {
    for (const SimulatedDevice& each : machine_.devices_) {
      int count = 0;
      const auto uses = [&](const std::vector<std::string>& devices) {
        return std::count(devices.begin(), devices.end(), each.device.uuid);
      };
      for (const Engine* engine : machine_.engines_)
        if (!engine->is_gone_) count += static_cast<int>(uses(engine->devices_));
      for (const auto& [pid, stray] : machine_.strays_)
        if (stray.until_ms > machine_.around_.timeline.now())
          count += static_cast<int>(uses(stray.devices));
      if (count > each.device.slots)
        machine_.around_.judge.report_violation(
            "I6", std::to_string(count) + " engines run on " + machine_.name_ + "/" +
                      each.device.uuid + " with " + std::to_string(each.device.slots) + " slots");
    }
  }
  void write_line(const std::string& what) {
    v1::EngineReport report;
    report.mutable_log()->set_line("fence " + std::to_string(grant_.attempt().fence()) + what);
    machine_.around_.judge.note_written_line(grant_.attempt().attempt_id(), report.log().line());
    events_.on_report(report);
  }
  void act() {
    write_line(" works");
    if (work().has_exit()) return later(1, 800, [this] { leave(work().exit().status()); });
    if (work().has_signal()) return later(1, 800, [this] { die(work().signal().number()); });
    if (work().has_garbage_ipc()) return later(1, 800, [this] { events_.on_garbage(); });
    if (work().has_hang()) return;
    if (work().has_checkpointing()) {
      is_stepping_ = true;
      return later(100, 1'500, [this] { take_step(); });
    }
    later(100, 5'000, [this] { finish(); });
  }
  void take_step() {
    if (next_step_ > work().checkpointing().steps()) return finish();
    write_line(" takes step " + std::to_string(next_step_));
    write_checkpoint();
    later(300, 2'500, [this] { take_step(); });
  }
  void write_checkpoint() {
    if (next_step_ > work().checkpointing().steps()) return;
    const std::string name = "ckpt/ckpt-" + std::to_string(next_step_);
    machine_.files_.write_from_outside(
        root_ / name, "job " + grant_.job_id() + " step " + std::to_string(next_step_));
    machine_.files_.sync_from_outside(root_ / name);
    v1::EngineReport report;
    report.mutable_checkpoint_ready()->set_path(name);
    report.mutable_checkpoint_ready()->set_step(next_step_++);
    events_.on_report(report);
  }
  void finish() {
    const std::string result = "the result of " + grant_.job_id() + " by fence " +
                               std::to_string(grant_.attempt().fence());
    const std::int64_t figure = machine_.around_.dice.draw(-1, 3);  // -1: the result has none
    machine_.around_.judge.note_result(grant_.attempt().fence(), wire::sha256_hex(result), figure);
    if (figure >= 0)
      machine_.files_.write_from_outside(
          root_ / "out" / "summary.json",
          std::string(R"({"summary":{")") + kFigure + "\":" + std::to_string(figure) + "}}");
    machine_.files_.write_from_outside(root_ / "out" / "result.txt", result);
    machine_.files_.write_from_outside(root_ / "out" / "part" / "shared.txt", "of every job");
    v1::EngineReport report;
    report.mutable_result_ready();
    events_.on_report(report);
    later(1, 200, [this] { leave(v1::ENGINE_EXIT_OK); });
  }
  void leave(int status) {
    if (!std::exchange(is_gone_, true)) events_.on_exit({.exit_status = status}, {});
  }
  void die(int signal) {
    if (!std::exchange(is_gone_, true)) events_.on_exit({.signal = signal}, {});
  }

  WorkerMachine& machine_;
  std::filesystem::path root_;
  ChildEvents& events_;
  std::int64_t pid_;
  v1::Grant grant_;
  std::vector<std::string> devices_;
  std::int64_t next_step_ = 1;
  bool is_stepping_ = false;
  bool is_gone_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

class WorkerMachine::Engines : public Spawner {
 public:
  explicit Engines(WorkerMachine& machine) : machine_(machine) {}
  std::unique_ptr<EngineChild> spawn(const LaunchPlan& plan, ChildEvents& events) override {
    machine_.points_.pass();
    return std::make_unique<Engine>(machine_, plan, events);
  }
  bool end_stray(const ProcessIdentity& child, Milliseconds) override {
    const auto stray = machine_.strays_.find(child.pid);
    return stray == machine_.strays_.end() ||
           stray->second.until_ms <= machine_.around_.timeline.now();
  }

 private:
  WorkerMachine& machine_;
};

}  // namespace quasi::sim
