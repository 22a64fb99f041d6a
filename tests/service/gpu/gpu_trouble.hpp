#pragma once

#include <cstdint>
#include <functional>

namespace quasi::test {

/// Real trouble of the CUDA device 0, for tests of a worker with a GPU. Every function is reported
/// as the kernels of this program are: by the exceptions of workers/backend/error.hpp.

/// Lets a kernel write to an address that is not mapped, and then asks the device for memory. CUDA
/// refuses that call, too, because the error stays with the process.
/// @throws DeviceLost with the message of the second call. @throws std::logic_error if CUDA reports
/// no error.
void write_to_unmapped_memory();

/// Allocates memory of the device in pieces of 256 MiB until an allocation fails.
/// @throws OutOfMemory always
void take_all_memory();

/// Leaves `left_bytes` of the device's free memory, calls `while_held`, and frees it.
void hold_memory(std::int64_t left_bytes, const std::function<void()>& while_held);

}  // namespace quasi::test
