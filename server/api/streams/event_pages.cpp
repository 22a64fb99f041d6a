#include "server/api/streams/event_pages.hpp"

#include <algorithm>

namespace quasi::server {

std::shared_ptr<const EventPage> EventPages::find(const std::string& feed, std::int64_t cursor,
                                                  std::int64_t now_ms) {
  const std::lock_guard lock(mutex_);
  make_room(now_ms, 0, 0);
  const auto kept = std::find_if(pages_.begin(), pages_.end(), [&](const Kept& each) {
    return each.page->after <= cursor && cursor < each.page->last && each.feed == feed;
  });
  return kept == pages_.end() ? nullptr : kept->page;
}

void EventPages::keep(const std::string& feed, std::shared_ptr<const EventPage> page,
                      std::int64_t now_ms) {
  if (page->bytes > kMostBytes) return;
  const std::lock_guard lock(mutex_);
  make_room(now_ms, page->bytes, 1);
  bytes_ += page->bytes;
  pages_.push_front({.feed = feed, .made_ms = now_ms, .page = std::move(page)});
}

void EventPages::make_room(std::int64_t now_ms, std::size_t for_bytes, std::size_t for_pages) {
  while (!pages_.empty() &&
         (bytes_ + for_bytes > kMostBytes || pages_.size() + for_pages > kMostPages ||
          pages_.back().made_ms + kLifeMs <= now_ms)) {
    bytes_ -= pages_.back().page->bytes;
    pages_.pop_back();
  }
}

}  // namespace quasi::server
