#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

// Facts about this machine, as Linux states them. The library quasi_host depends on nothing, so the
// daemon links it too.

namespace quasi {

/// Returns the value of one key of /proc/meminfo ("MemTotal:", "MemAvailable:"), in bytes, or 0.
std::int64_t meminfo_bytes(std::string_view key);

/// Returns the bytes of memory that this process can still use: MemAvailable, or less where a
/// control group of the process (version 1 or 2) or one above it has a limit. The page cache that a
/// group can give back counts as free. 0 if neither is known.
/// @param root  directory that holds proc and sys
std::int64_t usable_memory_bytes(const std::filesystem::path& root = "/");

/// Returns the model name of the first processor, or "CPU" if /proc/cpuinfo names none.
std::string cpu_model();

}  // namespace quasi
