#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace quasi {

/// How a running task speaks to whoever waits for it, and learns that it is no longer wanted.
///
/// Phases are short nouns ("scattering 3ph"); `done` and `total` count the work that dominates the
/// phase's time, so that their ratio is an honest estimate. Called between kernel launches, at
/// least once a second. Thread-safe.
class Progress {
 public:
  virtual ~Progress() = default;

  /// @throws Cancelled if the task is to stop.
  void report(std::string_view phase, std::int64_t done, std::int64_t total) {
    on_report(phase, done, total);
    throw_if_cancelled();
  }
  /// Live figures, e.g. {"residual", 3e-4}. Finite numbers only; at most 16 names a task.
  virtual void metric(std::string_view name, double value) = 0;
  /// A line for the log.
  virtual void log(std::string_view line) = 0;
  /// A new checkpoint file is complete at `path`; it may be copied away.
  virtual void checkpoint_ready(const std::string& path, std::int64_t step) = 0;

  void throw_if_cancelled() const;
  virtual bool cancelled() const = 0;
  /// True once after a checkpoint was asked for (drain); the task writes one soon.
  virtual bool checkpoint_wanted() = 0;

 protected:
  virtual void on_report(std::string_view phase, std::int64_t done, std::int64_t total) = 0;
};

/// Says nothing, never cancels: for tests and benchmarks.
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
