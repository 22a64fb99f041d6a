#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "client/views/console.hpp"
#include "quasi/v1/job.pb.h"

namespace quasi::client {

/// Rows that lines of these widths take in a window of `columns`, where long lines wrap.
std::size_t rows_on_terminal(const std::vector<std::size_t>& widths, std::size_t columns);

/// A bar such as "[#########.......]", filled by `share` of 0 … 1; `width` columns in all.
std::string progress_bar(double share, std::size_t width);

/// Estimates the time left in a job's phase from its pace since this client first saw the phase.
class PaceOfJob {
 public:
  void see(const v1::Progress& progress, std::int64_t now_ms);
  /// Time left in seconds; negative while there is no estimate.
  double seconds_left(std::int64_t now_ms) const;

 private:
  std::string phase_;
  std::int64_t first_done_ = 0, first_ms_ = 0;
  std::int64_t done_ = 0, total_ = 0, last_ms_ = 0;
};

/// A few lines at the bottom of a terminal, one per job, rewritten in place:
///
///     j_01J9QK3V8N  T=200  running  scattering 3ph [####....]  52 %  eta 4 min  residual 3.1e-04
///
/// Nothing is drawn if standard error is no terminal. Any other output of the console clears the
/// lines first; the next `draw` shows them again below it.
class LiveView {
 public:
  LiveView(Console& console, std::vector<std::string> job_ids);
  ~LiveView();
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;

  void see(const v1::Progress& progress, const std::string& job_id, std::int64_t now_ms);
  void set_remark(std::string remark) { remark_ = std::move(remark); }
  /// Sets the text that says why a queued job waits. "" removes it.
  void set_waiting(const std::string& job_id, std::string why) {
    if (why.empty())
      waiting_.erase(job_id);
    else
      waiting_[job_id] = std::move(why);
  }
  void draw(const std::map<std::string, v1::Job>& jobs, std::int64_t now_ms);
  void clear();

  /// The lines to draw: at most `max_lines`, none wider than `columns`.
  std::vector<std::string> lines(const std::map<std::string, v1::Job>& jobs, std::int64_t now_ms,
                                 std::size_t columns, std::size_t max_lines) const;

 private:
  std::string line(const v1::Job& job, const std::string& id, std::int64_t now_ms,
                   std::size_t columns, std::size_t name_width) const;

  Console& console_;
  std::vector<std::string> ids_;
  std::vector<std::string> shown_ids_;
  std::map<std::string, PaceOfJob> pace_;
  std::map<std::string, std::string> waiting_;  ///< by job id
  std::string remark_;
  /// Moves the cursor to the first drawn line, also after the window became narrower.
  std::string to_first_line() const;
  std::vector<std::size_t> drawn_;  ///< widths of the drawn lines
};

}  // namespace quasi::client
