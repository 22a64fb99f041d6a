#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace quasi {

/// Channel by which a running task reports progress and learns that it was cancelled.
///
/// A phase is a short noun ("scattering 3ph"). `done` and `total` count the work that dominates the
/// time of the phase, so that done/total estimates the elapsed share. Tasks report between kernel
/// launches, at least once a second. Thread-safe.
class Progress {
 public:
  virtual ~Progress() = default;

  /// @throws Cancelled if the task is to stop.
  void report(std::string_view phase, std::int64_t done, std::int64_t total) {
    on_report(phase, done, total);
    throw_if_cancelled();
  }
  /// Shows a current value, e.g. "residual" = 3e-4. Finite numbers only; at most 16 names a task.
  virtual void metric(std::string_view name, double value) = 0;
  /// Adds a line to the log of the attempt.
  virtual void log(std::string_view line) = 0;
  /// Announces that the checkpoint file at `path` is complete, so that it may be copied.
  virtual void checkpoint_ready(const std::string& path, std::int64_t step) = 0;

  /// @throws Cancelled if the task is to stop.
  void throw_if_cancelled() const;
  /// Returns true if the task is to stop.
  virtual bool cancelled() const = 0;
  /// Returns true once after a draining worker asked for a checkpoint. The task then writes one.
  virtual bool checkpoint_wanted() = 0;

 protected:
  virtual void on_report(std::string_view phase, std::int64_t done, std::int64_t total) = 0;
};

/// Ignores all reports and never cancels; for tests and benchmarks.
class SilentProgress : public Progress {
 public:
  void metric(std::string_view, double) override {}
  void log(std::string_view) override {}
  void checkpoint_ready(const std::string&, std::int64_t) override {}
  bool cancelled() const override { return false; }
  bool checkpoint_wanted() override { return false; }

 protected:
  void on_report(std::string_view, std::int64_t, std::int64_t) override {}
};

}  // namespace quasi
