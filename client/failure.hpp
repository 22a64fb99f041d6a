#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "client/exit_status.hpp"

namespace quasi::client {

/// One field of a request that was refused, as the server names it.
struct Violation {
  std::string field;
  std::string message;
};

/// A command ended without doing what was asked: one line that says what, one that says what to do.
/// Caught in main alone.
struct Failure : std::runtime_error {
  Failure(ExitStatus status_, const std::string& what, std::string remedy_ = "")
      : std::runtime_error(what), status(status_), remedy(std::move(remedy_)) {}

  ExitStatus status;
  std::string remedy;  ///< "" where nothing can be advised
  std::string reason;  ///< the server's machine-readable reason, e.g. "FIELD_INVALID"
  std::vector<Violation> violations;  ///< every refused field; the first is already in what()
  std::vector<std::string> details;   ///< shown with --verbose
};

}  // namespace quasi::client
