#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "quasi/v1/job_service.pb.h"
#include "server/queue/rows.hpp"

namespace quasi::server {

/// The events after a place in the table of events, as all watchers of one feed receive them.
struct EventPage {
  struct Entry {
    RowId job = 0;  ///< 0 for events of no job
    v1::WatchEvent message;
  };
  std::int64_t after = 0;  ///< number of the last event before the page
  std::int64_t last = 0;   ///< number of the last event that the page covers
  std::vector<Entry> entries;
  std::vector<RowId> foreign;  ///< jobs with events in this range that the filter does not select
  std::size_t bytes = 0;       ///< size of the messages on the wire
};

/// Keeps the pages that watchers read a moment ago. Watchers with the same filter and the same
/// rights form a feed. They follow each other through the table, so that one of them reads and
/// converts a page, and the others take it from here. Thread-safe.
class EventPages {
 public:
  /// Bound of the sizes of all pages together. A message takes about three times as much memory.
  static constexpr std::size_t kMostBytes = std::size_t{2} << 20;
  static constexpr std::size_t kMostPages = 256;  ///< so that find() is short
  /// A page is not used any more after this time, so that deleted events disappear.
  static constexpr std::int64_t kLifeMs = 5'000;

  /// The page of the feed that covers the first event after `cursor`; null if there is none.
  std::shared_ptr<const EventPage> find(const std::string& feed, std::int64_t cursor,
                                        std::int64_t now_ms);
  void keep(const std::string& feed, std::shared_ptr<const EventPage> page, std::int64_t now_ms);
  std::size_t bytes() const {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  struct Kept {
    std::string feed;
    std::int64_t made_ms = 0;
    std::shared_ptr<const EventPage> page;
  };
  /// Drops old pages, and the oldest ones until there is room.
  void make_room(std::int64_t now_ms, std::size_t for_bytes, std::size_t for_pages);

  mutable std::mutex mutex_;
  std::list<Kept> pages_;  ///< the newest first
  std::size_t bytes_ = 0;
};

}  // namespace quasi::server
