#pragma once

// The engines of WorkerWorld: scripts in place of child processes.

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "tests/service/support/worker_world.hpp"

namespace quasi::test {

/// A child process of the engine, as a script: each event is one step of the world.
class WorkerWorld::Child : public EngineChild {
 public:
  Child(WorkerWorld& world, const LaunchPlan& plan, ChildEvents& events)
      : world_(world), root_(plan.working_directory), events_(events), pid_(++next_pid_) {
    world_.children_.push_back(this);
  }
  ~Child() override { std::erase(world_.children_, this); }

  ProcessIdentity identity() const override { return {pid_, 1}; }

  bool send(const v1::EngineCommand& command) override {
    if (command.has_start()) begin(command.start());
    if (command.has_cancel() && work_ != "hang")
      later([this] { leave(v1::ENGINE_EXIT_CANCELLED); });
    return true;
  }
  void signal_group(int signal) override {
    if (signal != SIGKILL && work_ == "hang") return;
    later([this, signal] { die(signal); });
  }

 private:
  /// Runs unless the child is gone by then.
  void later(std::function<void()> function) {
    world_.events_.push_back([alive = std::weak_ptr<bool>(alive_), function] {
      if (alive.lock()) function();
    });
  }
  void begin(const v1::EngineStart& start) {
    // The grant of the attempt names the job, whose work is the script.
    v1::Grant grant;
    grant.ParseFromString(world_.files.read_file(root_ / "grant.pb").value_or(""));
    Job& job = world_.jobs_.at(grant.job_id());
    ++job.executions;
    work_ = job.work;
    if (!job.input.empty() && world_.files.read_file(root_ / "in" / "deck") != job.input)
      world_.violations.push_back("job " + job.id + " was started without its input");
    later([this] {
      v1::EngineReport report;
      report.mutable_started()->set_version("fake");
      events_.on_report(report);
    });
    later([this] {
      v1::EngineReport report;
      report.mutable_log()->set_line("working on " + work_);
      events_.on_report(report);
    });
    if (work_ == "noop") finish("the result of " + job.id);
    if (work_ == "steps") later([this, grant, start] { steps(grant, start); });
    if (work_ == "invalid") later([this] { leave(v1::ENGINE_EXIT_INVALID_INPUT); });
    if (work_ == "gpu_fault") later([this] { leave(v1::ENGINE_EXIT_DEVICE_FAULT); });
    if (work_ == "crash") later([this] { die(SIGSEGV); });
    if (work_ == "silent") later([this] { write_unannounced(); });
  }
  void steps(const v1::Grant& grant, const v1::EngineStart& start) {
    std::int64_t first = 1;
    for (const auto& name : world_.files.list(root_ / start.checkpoint_directory()))
      if (name.starts_with("ckpt-"))
        first = std::max<std::int64_t>(first, std::stoll(name.substr(5)) + 1);
    if (first <= grant.checkpoint().step())
      world_.violations.push_back("a checkpoint was granted but not placed");
    for (std::int64_t step = first; step <= 5; ++step)
      later([this, step] {
        const auto name = "ckpt/ckpt-" + std::to_string(step);
        world_.files.write_from_outside(root_ / name, "state " + std::to_string(step));
        v1::EngineReport report;
        report.mutable_checkpoint_ready()->set_path(name);
        report.mutable_checkpoint_ready()->set_step(step);
        events_.on_report(report);
      });
    finish("five steps");
  }
  /// Completes a checkpoint on the disk and dies before announcing it.
  void write_unannounced() {
    if (!world_.files.list(root_ / "ckpt").empty()) return finish("resumed");
    world_.files.write_from_outside(root_ / "ckpt" / "ckpt-7", "state 7");
    world_.files.write_from_outside(root_ / "ckpt" / "next-checkpoint.tmp", "half of state 8");
    die(SIGKILL);
  }
  void finish(const std::string& result) {
    later([this, result] {
      world_.files.write_from_outside(root_ / "out" / "result.txt", result);
      world_.files.write_from_outside(root_ / "out" / "T300K" / "BTE.kappa", "of 300 K");
      world_.files.write_from_outside(root_ / "out" / "summary.json",
                                      R"({"summary":{"done":true}})");
      v1::EngineReport report;
      report.mutable_result_ready();
      events_.on_report(report);
    });
    later([this] { leave(v1::ENGINE_EXIT_OK); });
  }
  void leave(int status) {
    if (!std::exchange(gone_, true)) events_.on_exit({.exit_status = status}, {});
  }
  void die(int signal) {
    if (!std::exchange(gone_, true)) events_.on_exit({.signal = signal}, {});
  }

  static inline std::int64_t next_pid_ = 0;
  WorkerWorld& world_;
  std::filesystem::path root_;
  ChildEvents& events_;
  std::int64_t pid_;
  std::string work_;
  bool gone_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

/// Starts scripts, and watches that no more run than there are slots.
class WorkerWorld::Engines : public Spawner {
 public:
  explicit Engines(WorkerWorld& world) : world_(world) {}
  std::unique_ptr<EngineChild> spawn(const LaunchPlan& plan, ChildEvents& events) override {
    world_.points.pass();
    auto child = std::make_unique<Child>(world_, plan, events);
    if (static_cast<int>(world_.children_.size()) > world_.n_slots_)
      world_.violations.push_back("more engines than slots");
    return child;
  }
  bool end_stray(const ProcessIdentity& child, Milliseconds patience) override {
    world_.stray_looks.emplace_back(child.pid, patience);
    return !world_.strays_outlive_sigkill;
  }

 private:
  WorkerWorld& world_;
};

}  // namespace quasi::test
