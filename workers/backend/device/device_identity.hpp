#pragma once

#include <string>

#include "workers/backend/device/device.hpp"

namespace quasi {

/// Returns a name that is equal in all processes for one device: the UUID of a CUDA device, "" for
/// the CPU.
std::string device_identity(const Device& device);

}  // namespace quasi
