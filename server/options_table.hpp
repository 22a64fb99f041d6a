#pragma once

#include <functional>
#include <string>
#include <vector>

#include "server/options.hpp"

namespace quasi::server {

/// One key of the server's configuration. The flag is --key with dashes; the environment variable
/// is QUASI_SERVER_KEY.
struct Entry {
  std::string key;
  std::string help;
  std::string unit = "TEXT";                                    ///< Kind of value, for --help.
  std::function<void(ServerOptions&, const std::string&)> set;  ///< Reads the value from text.
  std::function<std::string(const ServerOptions&)> show;        ///< Writes the value as TOML.
};

/// Every key, in the order of --help.
const std::vector<Entry>& entries();

}  // namespace quasi::server
