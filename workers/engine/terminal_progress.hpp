#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "workers/backend/progress.hpp"
#include "workers/backend/ranks/ranks.hpp"

namespace quasi {

/// Shows progress on standard error. On a terminal it is one line: live figures of the task and the
/// time left at the present pace, rewritten at most ten times a second. Other outputs get only the
/// lines of the log.
class TerminalProgress : public Progress {
 public:
  /// @param interrupted  true once the user wants the task to stop; outlives this object
  TerminalProgress(bool quiet, Ranks& ranks, const std::atomic<bool>& interrupted);
  ~TerminalProgress() override { clear(); }

  void metric(std::string_view name, double value) override;
  void log(std::string_view line) override;
  void checkpoint_ready(const std::string&, std::int64_t) override {}
  bool cancelled() const override { return interrupted_ || ranks_.peer_failed(); }
  bool checkpoint_wanted() override { return false; }

 protected:
  void on_report(std::string_view phase, std::int64_t done, std::int64_t total) override;

 private:
  /// The phase with its share and the figures, at most `most` characters long.
  std::string line(double share, double elapsed_s, std::size_t most) const;
  void clear();

  bool quiet_;
  bool terminal_;
  Ranks& ranks_;
  const std::atomic<bool>& interrupted_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point last_{}, began_{};
  double began_share_ = 0;
  std::string phase_;
  std::map<std::string, double> metrics_;
  std::mutex mutex_;  ///< Several devices report from their own threads.
};

}  // namespace quasi
