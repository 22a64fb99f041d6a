#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// Facts about this machine, as Linux states them. The library quasi_host depends on nothing, so the
// daemon links it too.

namespace quasi {

/// Returns the value of one key of /proc/meminfo ("MemTotal:", "MemAvailable:"), in bytes, or 0.
std::int64_t meminfo_bytes(std::string_view key);

/// Returns the model name of the first processor, or "CPU" if /proc/cpuinfo names none.
std::string cpu_model();

}  // namespace quasi
