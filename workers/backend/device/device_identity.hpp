#pragma once

#include <string>

#include "workers/backend/device/device.hpp"

namespace quasi {

/// By which two processes know that they mean the same device: the UUID of a CUDA device, "" for
/// the CPU.
std::string device_identity(const Device& device);

}  // namespace quasi
