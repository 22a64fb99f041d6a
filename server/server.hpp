#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/options.hpp"

namespace quasi::server {

/// A whole server: data directory, writer, readers and gRPC. It serves from construction until it
/// is stopped or destroyed.
class Server {
 public:
  /// Locks the data directory, opens and recovers the store, then listens.
  /// @throws AlreadyRunning, NetworkFileSystem, BadConfiguration, FileError, SqliteError.
  explicit Server(const ServerOptions& options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// The addresses as bound. Port 0 is replaced by the port that was bound.
  const std::vector<std::string>& addresses() const;
  /// Those of workers, as bound; empty if workers call at the addresses of clients.
  const std::vector<std::string>& worker_addresses() const;

  /// The address of metrics, as bound; empty if there is none.
  std::string metrics_address() const;

  /// Number of reads of the store by calls since the start.
  std::uint64_t reads() const;

  /// Refuses new calls, lets open calls end within `shutdown_ms`, and commits the queued writes.
  void stop();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace quasi::server
