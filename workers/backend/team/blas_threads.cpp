#include "workers/backend/team/blas_threads.hpp"

#include <cblas.h>
#include <omp.h>

#include <mutex>

namespace quasi {
namespace {

/// Work that one thread does in about 10 ms. To wake the threads takes up to a millisecond.
constexpr double kThreadedWork_flop = 2e8;

// BLAS has one number of threads for the whole process. Several threads of the process may hold
// objects at once, so the first sets the number and the last sets it back.
std::mutex mutex;
int n_objects = 0;
int threads_before = 1;

}  // namespace

void use_one_blas_thread() { openblas_set_num_threads(1); }

ThreadedBlas::ThreadedBlas(double flop) {
  if (flop < kThreadedWork_flop || omp_in_parallel()) return;
  const std::lock_guard lock(mutex);
  counts_ = true;
  if (n_objects++ > 0) return;
  threads_before = openblas_get_num_threads();
  openblas_set_num_threads(omp_get_max_threads());
}

ThreadedBlas::~ThreadedBlas() {
  if (!counts_) return;
  const std::lock_guard lock(mutex);
  if (--n_objects == 0) openblas_set_num_threads(threads_before);
}

}  // namespace quasi
