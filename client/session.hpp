#pragma once

#include "client/config.hpp"
#include "client/connection.hpp"
#include "client/console.hpp"
#include "client/state.hpp"

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
