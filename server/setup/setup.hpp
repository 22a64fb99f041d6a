#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

/// Begin here: server/setup makes what a new server needs before its first start.
namespace quasi::server {

/// The flags of `quasi-server init`.
struct SetupOptions {
  /// Names and addresses by which others reach this machine. The first one stands in the codes.
  std::vector<std::string> hostnames;
  std::string data_directory = "/var/lib/quasi";
  std::string configuration = "/etc/quasi/server.toml";
  std::string bind = "0.0.0.0";  ///< address at which the server listens
  std::int32_t port = 7460;
  bool renew = false;  ///< only the certificate of the server is made anew
};

/// Makes the data directory, a certificate authority, the certificate of the server and the
/// configuration, then a first admin and a first worker with a one-time code for each. Keys have
/// mode 0600. Nothing that exists is overwritten. With `renew` it replaces the certificate of the
/// server by a new one of the same authority; a running server reads it within a second.
/// @param out  gets the next steps; the codes stand nowhere else
/// @throws BadConfiguration if something exists already, AlreadyRunning, FileError, SqliteError.
void set_up(const SetupOptions& options, std::ostream& out);

/// Reads the flags after `quasi-server init` and sets the server up. @return the exit status.
int init_command(int argc, const char* const* argv);

}  // namespace quasi::server
