#include <stdexcept>
#include <string>
#include <vector>

#include "tests/service/gpu/gpu_trouble.hpp"
#include "workers/backend/device/device_buffer.cuh"

namespace quasi::test {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{256} << 20;

__global__ void write_word(std::uint64_t address) {
  *reinterpret_cast<volatile std::uint64_t*>(address) = 1;
}

}  // namespace

void write_to_unmapped_memory() {
  write_word<<<1, 1>>>(0x40);
  cuda::check_launch("write to an unmapped address");
  if (cudaDeviceSynchronize() == cudaSuccess)
    throw std::logic_error("the GPU wrote to an unmapped address without an error");
  const cuda::DeviceBuffer<char> later(1, "memory after an error of the device");
  throw std::logic_error("CUDA forgot the error of the device");
}

void take_all_memory() {
  std::vector<cuda::DeviceBuffer<char>> pieces;
  while (true) pieces.emplace_back(kPieceBytes, "one more piece of 256 MiB");
}

void hold_memory(std::int64_t left_bytes, const std::function<void()>& while_held) {
  std::size_t free = 0, total = 0;
  cuda::check(cudaMemGetInfo(&free, &total), "free memory");
  const auto left = static_cast<std::size_t>(left_bytes);
  if (free <= left)
    throw OutOfMemory("the device has " + std::to_string(free >> 20) + " MiB free, and " +
                      std::to_string(left >> 20) + " MiB are to be left");
  const cuda::DeviceBuffer<char> held(free - left, "memory to hold");
  while_held();
}

}  // namespace quasi::test
