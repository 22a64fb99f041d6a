#include "tests/service/simulator/timeline.hpp"

namespace quasi::sim {
namespace {

constexpr std::size_t kLastLines = 60;

}  // namespace

void Timeline::plan_event(std::int64_t delay_ms, std::function<void()> action) {
  plan_[{now_ms_ + delay_ms, planned_++}] = {.is_event = true, .action = std::move(action)};
}

void Timeline::plan_timeout(std::int64_t delay_ms, std::function<void()> action) {
  plan_[{now_ms_ + delay_ms, planned_++}] = {.is_event = false, .action = std::move(action)};
}

bool Timeline::step() {
  if (plan_.empty()) return false;
  const auto next = plan_.begin();
  now_ms_ = next->first.first;
  const Planned planned = std::move(next->second);
  plan_.erase(next);
  if (planned.is_event) ++events_;
  planned.action();
  return true;
}

void Timeline::record(const std::string& line) {
  lines_.push_back("event " + std::to_string(events_) + " at " + std::to_string(now_ms_) +
                   " ms: " + line);
  history_.update(lines_.back());
  history_.update("\n");
  if (lines_.size() > kLastLines) lines_.pop_front();
}

std::string Timeline::last_lines() const {
  std::string text;
  for (const std::string& line : lines_) text += "  " + line + "\n";
  return text;
}

}  // namespace quasi::sim
