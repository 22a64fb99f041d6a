#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace quasi {

/// Properties of an engine: the kinds that it knows and the devices that it can use.
struct EngineFacts {
  std::vector<std::string> kinds;
  bool cuda = false;
  std::string cuda_absence;  ///< reason, if cuda is false
};

/// Runs `engine devices --json`. @throws ConfigError if it gives no valid answer within 30 s.
EngineFacts ask_engine(const std::filesystem::path& engine);

/// Tests the GPU of a uuid: runs `program`, or without one asks the engine to list the device.
/// @return what is wrong, or ""; a program passes with status 0
std::string test_device(const std::filesystem::path& engine, const std::filesystem::path& program,
                        const std::string& uuid);

/// The walls that quasi-cage can build around engines on this machine.
struct CageFacts {
  bool whole = false;
  std::string summary;  ///< one line for people
};

/// Asks `cage --probe`. @throws ConfigError if it does not answer within 30 s.
CageFacts ask_cage(const std::filesystem::path& cage);

}  // namespace quasi
