#pragma once

#include <cstdint>

namespace quasi::cpu {

/// Calls body(i) for every i in [0, n), on all OpenMP threads. Each index is written by one thread,
/// so results do not depend on the number of threads.
template <typename Body>
void for_each_index(std::int64_t n, const Body& body) {
#pragma omp parallel for schedule(dynamic, 64)
  for (std::int64_t i = 0; i < n; ++i) body(i);
}

}  // namespace quasi::cpu
