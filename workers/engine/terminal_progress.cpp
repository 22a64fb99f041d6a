#include "workers/engine/terminal_progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>

namespace quasi {
namespace {

constexpr std::size_t kLineLength = 160;

/// Returns the usable columns of the terminal. The last column is not used, because some terminals
/// break the line there.
std::size_t columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1
             ? std::min<std::size_t>(size.ws_col, kLineLength) - 1
             : 79;
}

}  // namespace

TerminalProgress::TerminalProgress(bool quiet, Ranks& ranks, const std::atomic<bool>& interrupted)
    : quiet_(quiet || !ranks.leads()),
      terminal_(isatty(STDERR_FILENO) != 0),
      ranks_(ranks),
      interrupted_(interrupted) {}

void TerminalProgress::metric(std::string_view name, double value) {
  const std::lock_guard lock(mutex_);
  metrics_[std::string(name)] = value;
}

void TerminalProgress::log(std::string_view line) {
  if (quiet_) return;
  const std::lock_guard lock(mutex_);
  clear();
  std::cerr << line << '\n';
}

void TerminalProgress::on_report(std::string_view phase, std::int64_t done, std::int64_t total) {
  if (quiet_ || !terminal_) return;
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < std::chrono::milliseconds(100) && done < total) return;
  last_ = now;
  const double share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0.0;
  if (phase != phase_) {
    phase_ = phase;
    began_ = now;
    began_share_ = share;
  }
  const double elapsed_s = std::chrono::duration<double>(now - began_).count();
  std::fprintf(stderr, "\r\033[K%s", line(share, elapsed_s, columns()).c_str());
  std::fflush(stderr);
  shown_ = true;
}

std::string TerminalProgress::line(double share, double elapsed_s, std::size_t most) const {
  std::string line;
  // A line that the terminal breaks cannot be rewritten. An item that does not fit is left out as
  // a whole.
  const auto add = [&](const char* form, auto... values) {
    char text[kLineLength];
    const int length = std::snprintf(text, sizeof text, form, values...);
    if (length > 0 && line.size() + static_cast<std::size_t>(length) <= most) line += text;
  };
  add("%s  %5.1f %%", phase_.c_str(), 100.0 * share);
  if (share < 1.0 && share - began_share_ > 0.01 && elapsed_s > 2.0) {
    const double left_s = elapsed_s * (1.0 - share) / (share - began_share_);
    left_s < 100.0 ? add(", about %.0f s left", left_s)
                   : add(", about %.0f min left", left_s / 60.0);
  }
  for (const auto& [name, value] : metrics_) add("  %s %.5g", name.c_str(), value);
  return line;
}

void TerminalProgress::clear() {
  if (shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

}  // namespace quasi
