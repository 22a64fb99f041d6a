#include "workers/backend/device/host.hpp"

#include <fstream>

namespace quasi {

std::int64_t meminfo_bytes(std::string_view key) {
  std::ifstream in("/proc/meminfo");
  std::string word;
  std::int64_t kib = 0;
  while (in >> word >> kib) {
    if (word == key) return kib * 1024;
    in.ignore(64, '\n');
  }
  return 0;
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
