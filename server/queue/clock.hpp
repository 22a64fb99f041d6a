#pragma once

#include <cstdint>

namespace quasi::server {

/// One moment on both clocks. Leases depend on the monotonic clock alone. The wall clock serves for
/// display and for not_before.
struct Now {
  std::int64_t wall_ms = 0;       ///< since 1970
  std::int64_t monotonic_ms = 0;  ///< since an arbitrary moment of this process's life
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Now now() const = 0;
};

class SystemClock : public Clock {
 public:
  Now now() const override;
};

}  // namespace quasi::server
