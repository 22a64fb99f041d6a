#pragma once

#include "client/input/config.hpp"
#include "client/session/connection.hpp"
#include "client/session/state.hpp"
#include "client/views/console.hpp"

namespace quasi::client {

/// What every command works with. One per process; commands run on one thread unless they say so.
struct Session {
  Console& console;
  const Config& config;
  const State& state;
  Connection& server;
  bool timeout_given = false;  ///< --timeout was said: then it limits waiting, too
};

}  // namespace quasi::client
