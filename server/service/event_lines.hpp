#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/queue/ids.hpp"
#include "server/store/sqlite_store.hpp"

namespace quasi::server {

/// The lines of the event log. Each start of the server begins a line with a random id. A resume
/// token names its line, so that a token of events that a restored copy does not hold is refused,
/// even after the copy has given their numbers to other events (I9).
class EventLines {
 public:
  /// Reads the lines that the store knows and begins a new one after its newest event. The caller
  /// has opened a transaction.
  void begin(SqliteStore& store, RandomSource& random);

  /// Id of the line that the present process writes.
  const std::string& current() const { return lines_.back().id; }
  /// True if event number `seq` of line `id` belongs to the history of this store.
  bool hold(const std::string& id, std::int64_t seq) const;

 private:
  struct Line {
    std::string id;
    std::int64_t after_event;  ///< number of the newest event when the line began
  };
  static constexpr std::size_t kMost = 256;  ///< tokens of older lines have expired
  std::vector<Line> lines_;
};

}  // namespace quasi::server
