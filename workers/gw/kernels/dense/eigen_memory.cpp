#include "workers/gw/kernels/dense/eigen_memory.hpp"

namespace quasi::gw {

CallMemory memory_of_eigen_hermitian(const Device& device, std::int64_t n, bool real) {
  if (device.backend == Backend::kCuda) return memory_of_eigen_hermitian_cuda(device, n, real);
  // DSYEVD takes 1 + 6n + 2n² reals. ZHEEVD takes 2n + n² complex numbers and 1 + 5n + 2n²
  // reals. Both take 3 + 5n integers.
  const std::int64_t square = n * n, values = 8 * n, integers = 4 * (3 + 5 * n);
  if (real) return {.host_bytes = 8 * square + values + integers + 8 * (1 + 6 * n + 2 * square)};
  return {.host_bytes = 16 * square + values + integers + 16 * (2 * n + square) +
                        8 * (1 + 5 * n + 2 * square)};
}

}  // namespace quasi::gw
