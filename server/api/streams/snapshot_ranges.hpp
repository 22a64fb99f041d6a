#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "server/queue/rows.hpp"

namespace quasi::server {

/// Remembers which events the snapshots of a watch include (I9). Snapshots are sent in pages by
/// rising job. Each page is one read of the store, so it includes all events up to the newest one
/// of that moment. Pages without a commit between them share an entry. The number of entries is
/// bounded, so the memory of a watch does not depend on the number of jobs (I20).
class SnapshotRanges {
 public:
  /// The most entries: 128 KiB a watch.
  static constexpr std::size_t kMost = 8'192;

  /// Adds a page that shows the jobs up to `last_job` with the events up to `newest_event`.
  /// @return false if there is no room.
  bool add(RowId last_job, std::int64_t newest_event) {
    if (!pages_.empty() && pages_.back().second == newest_event)
      pages_.back().first = last_job;
    else if (pages_.size() == kMost)
      return false;
    else
      pages_.emplace_back(last_job, newest_event);
    return true;
  }
  /// True if the snapshot of the job includes the event with this number.
  bool include(RowId job, std::int64_t event) const {
    const auto page = std::lower_bound(
        pages_.begin(), pages_.end(), job,
        [](const std::pair<RowId, std::int64_t>& entry, RowId id) { return entry.first < id; });
    return page != pages_.end() && event <= page->second;
  }
  void clear() { std::vector<std::pair<RowId, std::int64_t>>().swap(pages_); }
  std::size_t size() const { return pages_.size(); }

 private:
  std::vector<std::pair<RowId, std::int64_t>> pages_;  ///< last job and newest event of each page
};

}  // namespace quasi::server
