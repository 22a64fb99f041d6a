#pragma once

#include "client/session/session.hpp"

namespace quasi::client {

struct DevicesOptions {
  bool local = false;  ///< of this machine, by quasi-engine, instead of the server's workers
};

ExitStatus devices(Session& session, const DevicesOptions& options);

/// `quasi version`: of this program, and of the server if one answers within a second.
ExitStatus version(Session& session);

}  // namespace quasi::client
