#include "workers/backend/device/host.hpp"

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

namespace quasi {
namespace {

namespace fs = std::filesystem;

/// Returns the number after a word in a file of words and numbers.
std::optional<std::int64_t> number_after(const fs::path& path, std::string_view key) {
  std::ifstream in(path);
  std::string word;
  std::int64_t number = 0;
  while (in >> word >> number) {
    if (word == key) return number;
    in.ignore(64, '\n');
  }
  return std::nullopt;
}

/// Returns the number that a file holds. A limit that is not set reads "max".
std::optional<std::int64_t> number_in(const fs::path& path) {
  std::ifstream in(path);
  std::int64_t number = 0;
  return in >> number ? std::optional(number) : std::nullopt;
}

/// Names of the files of a memory controller.
struct MemoryFiles {
  const char *limit, *usage, *cache;
};
constexpr MemoryFiles kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes",
                                "total_inactive_file"};
constexpr MemoryFiles kVersion2{"memory.max", "memory.current", "inactive_file"};

/// Lowers `usable` to what a group and those above it leave.
void lower_to_group(const fs::path& mount, fs::path group, const MemoryFiles& files,
                    std::int64_t& usable) {
  while (true) {
    const fs::path at = mount / group.relative_path();
    const auto limit = number_in(at / files.limit), usage = number_in(at / files.usage);
    if (limit && usage) {
      const std::int64_t cache = number_after(at / "memory.stat", files.cache).value_or(0);
      usable = std::min(
          usable, std::max<std::int64_t>(1, *limit - std::max<std::int64_t>(0, *usage - cache)));
    }
    if (!group.has_relative_path()) return;
    group = group.parent_path();
  }
}

std::int64_t meminfo_bytes(const fs::path& root, std::string_view key) {
  return number_after(root / "proc/meminfo", key).value_or(0) * 1024;
}

}  // namespace

std::int64_t meminfo_bytes(std::string_view key) { return meminfo_bytes("/", key); }

std::int64_t usable_memory_bytes(const fs::path& root) {
  std::int64_t usable = meminfo_bytes(root, "MemAvailable:");
  if (usable == 0) return 0;
  std::ifstream in(root / "proc/self/cgroup");
  const fs::path mount = root / "sys/fs/cgroup";
  for (std::string line; std::getline(in, line);) {
    const auto colon = line.rfind(':');
    if (line.starts_with("0::"))
      lower_to_group(mount, line.substr(3), kVersion2, usable);
    else if (line.find(":memory:") != std::string::npos)
      lower_to_group(mount / "memory", line.substr(colon + 1), kVersion1, usable);
  }
  return usable;
}

std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) {
      const auto colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  }
  return "CPU";
}

}  // namespace quasi
