#include "client/views/live_view.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "client/views/job_view.hpp"
#include "client/views/readable.hpp"

namespace quasi::client {
namespace {

/// Cuts text to a number of columns, at the boundary of a character.
std::string fitted(const std::string& text, std::size_t columns) {
  std::string shown;
  std::size_t width = 0;
  for (const char byte : text) {
    if ((static_cast<unsigned char>(byte) & 0xC0u) != 0x80u && ++width > columns) break;
    shown += byte;
  }
  return shown;
}

std::string padded(const std::string& text, std::size_t columns) {
  const std::size_t width = display_width(text);
  return width >= columns ? text : text + std::string(columns - width, ' ');
}

std::string figure(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4g", value);
  return text.data();
}

/// The time left in whole seconds, because it is only an estimate.
std::string eta(double seconds) {
  return seconds < 60.0 ? std::to_string(static_cast<int>(std::ceil(seconds))) + " s"
                        : readable_seconds(seconds);
}

constexpr std::size_t kNameColumns = 20;

/// Order of the lines: running jobs come first, because they change most.
int rank(v1::JobState state) {
  switch (state) {
    case v1::JOB_STATE_RUNNING:
    case v1::JOB_STATE_CANCELLING:
      return 0;
    case v1::JOB_STATE_LEASED:
      return 1;
    case v1::JOB_STATE_FAILED:
    case v1::JOB_STATE_CANCELLED:
      return 2;
    case v1::JOB_STATE_SUCCEEDED:
      return 4;
    default:
      return 3;
  }
}

}  // namespace

std::string progress_bar(double share, std::size_t width) {
  const std::size_t inside = width > 2 ? width - 2 : 0;
  const double clean = std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0.0;
  const auto filled = static_cast<std::size_t>(clean * static_cast<double>(inside) + 1e-9);
  return "[" + std::string(filled, '#') + std::string(inside - filled, '.') + "]";
}

void PaceOfJob::see(const v1::Progress& progress, std::int64_t now_ms) {
  if (progress.phase() != phase_ || progress.done() < done_ || progress.total() != total_) {
    phase_ = progress.phase();
    total_ = progress.total();
    first_done_ = progress.done();
    first_ms_ = now_ms;
  }
  done_ = progress.done();
  last_ms_ = now_ms;
}

double PaceOfJob::seconds_left(std::int64_t now_ms) const {
  const double elapsed_s = static_cast<double>(last_ms_ - first_ms_) / 1e3;
  const std::int64_t advanced = done_ - first_done_;
  if (total_ <= 0 || advanced <= 0 || elapsed_s < 2.0 || done_ >= total_) return -1.0;
  const double left =
      static_cast<double>(total_ - done_) * elapsed_s / static_cast<double>(advanced) -
      static_cast<double>(now_ms - last_ms_) / 1e3;
  return std::max(left, 0.0);
}

LiveView::LiveView(Console& console, std::vector<std::string> job_ids)
    : console_(console), ids_(std::move(job_ids)), shown_ids_(short_ids(ids_)) {
  console_.set_clear_hook([this] { clear(); });
}

LiveView::~LiveView() {
  clear();
  console_.set_clear_hook(nullptr);
}

void LiveView::see(const v1::Progress& progress, const std::string& job_id, std::int64_t now_ms) {
  pace_[job_id].see(progress, now_ms);
}

std::string LiveView::line(const v1::Job& job, const std::string& id, std::int64_t now_ms,
                           std::size_t columns, std::size_t name_width) const {
  std::string text = id + "  ";
  if (name_width > 0)
    text += padded(fitted(printable(job.spec().name()), kNameColumns), name_width) + "  ";
  text += padded(state_word(job.state()), 9);
  if (job.state() == v1::JOB_STATE_RUNNING && job.has_progress()) {
    const v1::Progress& progress = job.progress();
    text += "  " + fitted(printable(progress.phase()), 24);
    if (progress.total() > 0) {
      const double share =
          static_cast<double>(progress.done()) / static_cast<double>(progress.total());
      std::array<char, 16> percent{};
      std::snprintf(percent.data(), percent.size(), " %3.0f %%", 100.0 * share);
      text += " " + progress_bar(share, 14) + percent.data();
      if (const auto pace = pace_.find(job.id()); pace != pace_.end())
        if (const double left = pace->second.seconds_left(now_ms); left >= 0.0)
          text += "  eta " + eta(left);
    }
    const std::map<std::string, double> metrics(progress.metrics().begin(),
                                                progress.metrics().end());
    // A metric is shown only if all of it fits.
    for (const auto& [name, value] : metrics) {
      const NamedUnit metric_name = split_unit(name);
      const std::string metric = "  " + printable(metric_name.name) + " " + figure(value) +
                                 (metric_name.unit.empty() ? "" : " " + metric_name.unit);
      if (display_width(text) + display_width(metric) <= columns) text += metric;
    }
  } else if (job.state() == v1::JOB_STATE_RUNNING && job.has_started()) {
    text += "  " + readable_seconds(static_cast<double>(now_ms - unix_ms(job.started())) / 1e3);
  } else if (job.has_failure()) {
    text += "  " + printable(failure_text(job.failure()));
  } else if (const auto why = waiting_.find(job.id());
             why != waiting_.end() && job.state() == v1::JOB_STATE_QUEUED) {
    text += "  " + printable(why->second);
  }
  return fitted(text, columns);
}

std::vector<std::string> LiveView::lines(const std::map<std::string, v1::Job>& jobs,
                                         std::int64_t now_ms, std::size_t columns,
                                         std::size_t max_lines) const {
  std::vector<std::size_t> order(ids_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto rank_of = [&](std::size_t i) {
    const auto job = jobs.find(ids_[i]);
    return job == jobs.end() ? 3 : rank(job->second.state());
  };
  const bool crowded = ids_.size() > max_lines;
  std::size_t name_width = 0;
  for (const auto& [id, job] : jobs)
    name_width = std::max(name_width, std::min(display_width(job.spec().name()), kNameColumns));
  // If there is room for all jobs, every job keeps its line, because moving lines are hard to read.
  if (crowded)
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return rank_of(a) < rank_of(b); });
  const std::size_t own_lines = crowded ? max_lines - 1 : ids_.size();
  std::vector<std::string> drawn;
  std::map<std::string, std::size_t> rest;
  for (std::size_t n = 0; n < order.size(); ++n) {
    const auto job = jobs.find(ids_[order[n]]);
    if (n >= own_lines)
      ++rest[job == jobs.end() ? "unknown" : state_word(job->second.state())];
    else if (job != jobs.end())
      drawn.push_back(line(job->second, shown_ids_[order[n]], now_ms, columns, name_width));
  }
  if (!rest.empty()) {
    std::string text = "and " + std::to_string(order.size() - own_lines) + " more:";
    const char* comma = " ";
    for (const auto& [state, count] : rest)
      text += std::exchange(comma, ", ") + std::to_string(count) + " " + state;
    drawn.push_back(fitted(text, columns));
  }
  if (!remark_.empty()) drawn.push_back(fitted(remark_, columns));
  return drawn;
}

std::size_t rows_on_terminal(const std::vector<std::size_t>& widths, std::size_t columns) {
  std::size_t rows = 0;
  for (const std::size_t width : widths)
    rows += std::max<std::size_t>(1, (width + columns - 1) / columns);
  return rows;
}

std::string LiveView::to_first_line() const {
  const auto columns = static_cast<std::size_t>(std::max(console_.terminal().columns, 1));
  const std::size_t rows = rows_on_terminal(drawn_, columns);
  return rows == 0 ? "" : "\033[" + std::to_string(rows) + "A";
}

void LiveView::draw(const std::map<std::string, v1::Job>& jobs, std::int64_t now_ms) {
  if (!console_.terminal().err || console_.quiet()) return;
  console_.refresh_size();
  const auto columns = static_cast<std::size_t>(std::max(console_.terminal().columns - 1, 20));
  // One line is reserved for the remark and one for the prompt. More than 20 jobs are hard to read.
  const auto max_lines = static_cast<std::size_t>(std::clamp(console_.terminal().rows - 2, 3, 20));
  std::string text = to_first_line();
  drawn_.clear();
  // Lines that a narrower window has wrapped are erased before the new ones are written.
  text += "\r\033[J";
  for (const std::string& drawn : lines(jobs, now_ms, columns, max_lines)) {
    text += drawn + "\n";
    drawn_.push_back(display_width(drawn));
  }
  console_.draw(text);
}

void LiveView::clear() {
  if (drawn_.empty()) return;
  console_.refresh_size();
  console_.draw(to_first_line() + "\r\033[J");
  drawn_.clear();
}

}  // namespace quasi::client
