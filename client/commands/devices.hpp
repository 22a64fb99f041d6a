#pragma once

#include "client/session/session.hpp"

namespace quasi::client {

struct DevicesOptions {
  bool local = false;  ///< ask quasi-engine for the devices of this machine
};

ExitStatus devices(Session& session, const DevicesOptions& options);

/// `quasi version` prints the version of this program, and of the server if one answers within a
/// second.
ExitStatus version(Session& session);

}  // namespace quasi::client
