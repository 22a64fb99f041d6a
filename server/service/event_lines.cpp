#include "server/service/event_lines.hpp"

#include <iterator>
#include <sstream>

namespace quasi::server {

void EventLines::begin(SqliteStore& store, RandomSource& random) {
  lines_.clear();
  std::istringstream known(store.meta("event_lines"));
  for (Line line; known >> line.id >> line.after_event;) lines_.push_back(line);
  lines_.push_back({.id = std::to_string(random.next()), .after_event = store.newest_event()});
  if (lines_.size() > kMost)
    lines_.erase(lines_.begin(), std::prev(lines_.end(), static_cast<std::ptrdiff_t>(kMost)));
  std::string text;
  for (const Line& line : lines_) text += line.id + " " + std::to_string(line.after_event) + "\n";
  store.set_meta("event_lines", text);
}

bool EventLines::hold(const std::string& id, std::int64_t seq) const {
  for (std::size_t i = 0; i < lines_.size(); ++i)
    if (lines_[i].id == id) return i + 1 == lines_.size() || seq <= lines_[i + 1].after_event;
  return false;
}

}  // namespace quasi::server
