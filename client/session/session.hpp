#pragma once

#include "client/input/config.hpp"
#include "client/session/connection.hpp"
#include "client/session/state.hpp"
#include "client/views/console.hpp"

namespace quasi::client {

/// Begin here: client/session connects a command with the server and with the files of its user.
/// `Session` holds the objects that every command uses. There is one session a process. Commands
/// run on one thread unless their comments say otherwise.
struct Session {
  Console& console;
  const Config& config;
  const State& state;
  Connection& server;
  bool timeout_given = false;  ///< --timeout was given, so it also limits waiting
};

}  // namespace quasi::client
