#include "workers/backend/progress.hpp"

#include "workers/backend/error.hpp"

namespace quasi {

void Progress::throw_if_cancelled() const {
  if (cancelled()) throw Cancelled("cancelled");
}

}  // namespace quasi
