#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/options.hpp"

namespace quasi::server {

/// A whole server: data directory, writer, readers, gRPC. Serves from construction on until it is
/// stopped or destroyed.
class Server {
 public:
  /// Locks the data directory, opens and recovers the store, then listens.
  /// @throws AlreadyRunning, NetworkFileSystem, BadConfiguration, FileError, SqliteError.
  explicit Server(const ServerOptions& options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Addresses as they were bound; port 0 is replaced by the one that was found.
  const std::vector<std::string>& addresses() const;

  /// Refuses new calls, lets those in hand end (at most `shutdown_ms`), commits what is queued.
  void stop();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace quasi::server
