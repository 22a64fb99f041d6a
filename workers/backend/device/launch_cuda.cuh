#pragma once

#include <cstdint>

#include "workers/backend/device/check_cuda.cuh"

namespace quasi::cuda {

template <typename Body>
__global__ void for_each_index_kernel(std::int64_t n, Body body) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; i < n;
       i += stride)
    body(i);
}

/// Calls body(i) for every i in [0, n), with one thread for each index.
template <typename Body>
void for_each_index(std::int64_t n, const Body& body, const char* what,
                    cudaStream_t stream = nullptr) {
  if (n <= 0) return;
  constexpr int kThreads = 256;
  constexpr std::int64_t kMaxBlocks = 1 << 20;
  const std::int64_t blocks = (n + kThreads - 1) / kThreads;
  for_each_index_kernel<<<static_cast<unsigned>(blocks < kMaxBlocks ? blocks : kMaxBlocks),
                          kThreads, 0, stream>>>(n, body);
  check_launch(what);
}

}  // namespace quasi::cuda
