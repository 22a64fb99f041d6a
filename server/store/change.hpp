#pragma once

#include <optional>

#include "server/queue/rows.hpp"

namespace quasi::server {

/// One change of the store: a row of a job or of one of its attempts was written, or an event of
/// the job was appended. Open calls compare it with the jobs that they show.
struct Change {
  RowId job = 0;
  std::optional<EventType> event;  ///< empty: a row was written
};

}  // namespace quasi::server
