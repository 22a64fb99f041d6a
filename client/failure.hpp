#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "client/exit_status.hpp"

namespace quasi::client {

/// One refused field of a request, with the server's name for it.
struct Violation {
  std::string field;
  std::string message;
};

/// A command failed. The failure has one line with the reason and one with the remedy. Only main
/// catches it.
struct Failure : std::runtime_error {
  Failure(ExitStatus status_, const std::string& what, std::string remedy_ = "")
      : std::runtime_error(what), status(status_), remedy(std::move(remedy_)) {}

  ExitStatus status;
  std::string remedy;  ///< "" if there is no advice
  std::string reason;  ///< the server's machine-readable reason, e.g. "FIELD_INVALID"
  std::vector<Violation> violations;  ///< every refused field; the first is already in what()
  std::vector<std::string> details;   ///< shown with --verbose
};

}  // namespace quasi::client
