#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace quasi {

/// What an engine says of itself: which kinds it knows and what it can run on.
struct EngineFacts {
  std::vector<std::string> kinds;
  bool cuda = false;
  std::string cuda_absence;  ///< where !cuda, why
};

/// Asks `engine devices --json`. @throws ConfigError if it does not answer within 30 s or not as an
/// engine does.
EngineFacts ask_engine(const std::filesystem::path& engine);

}  // namespace quasi
