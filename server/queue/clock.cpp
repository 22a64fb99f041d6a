#include "server/queue/clock.hpp"

#include <chrono>

namespace quasi::server {

Now SystemClock::now() const {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  return {
      .wall_ms =
          duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count(),
      .monotonic_ms =
          duration_cast<milliseconds>(std::chrono::steady_clock::now().time_since_epoch()).count()};
}

}  // namespace quasi::server
