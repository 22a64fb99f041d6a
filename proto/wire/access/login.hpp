#pragma once

#include <stdexcept>
#include <string>

#include "proto/wire/access/join_code.hpp"

namespace quasi::wire {

/// A code could not be exchanged for a token. `remedy` says what to do.
struct LoginError : std::runtime_error {
  LoginError(const std::string& what, std::string remedy_)
      : std::runtime_error(what), remedy(std::move(remedy_)) {}
  std::string remedy;
};

/// A token with everything that opens the server.
struct Login {
  std::string address;
  std::string ca_pem;     ///< the CA of the server; its fingerprint is the one of the code
  std::string token;      ///< "qsi_…"
  std::string principal;  ///< name of the caller
  std::string role;       ///< e.g. "worker"
  std::string pool;       ///< of a worker that is bound to one
  std::string scopes;     ///< of a narrowed token, with commas, e.g. "read,submit"
};

/// Reads a line for a code: the argument, or for "-" and "" the first line of standard input, so
/// that the code appears in no list of processes. It asks for the line on a terminal.
/// @throws LoginError if the text is no whole code.
JoinCode read_join_code(const std::string& argument);

/// Finds the server of a code by the fingerprint of its CA, and exchanges the secret for a token.
/// The secret is sent after the certificate of the server was verified with this CA.
/// @throws LoginError.
Login redeem(const JoinCode& code);

}  // namespace quasi::wire
