#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>
#include <vector>

namespace quasi::server {

/// Holds the server's addresses, those of clients and those of workers, while the store is opened
/// and recovered. Every call is answered with UNAVAILABLE / STARTING, and the health service says
/// NOT_SERVING. It registers no service, so no call can reach a store that is not ready. Its
/// destructor frees the addresses.
class StartingServer {
 public:
  /// @param tls  of the TCP addresses; null: plain text
  /// @throws BadConfiguration if an address cannot be bound, or is not local and has no TLS.
  StartingServer(const std::vector<std::string>& listen,
                 const std::vector<std::string>& worker_listen,
                 const std::shared_ptr<grpc::ServerCredentials>& tls);
  ~StartingServer();
  StartingServer(const StartingServer&) = delete;
  StartingServer& operator=(const StartingServer&) = delete;

  /// The addresses as bound. Port 0 is replaced by the port that was bound.
  const std::vector<std::string>& addresses() const;
  const std::vector<std::string>& worker_addresses() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace quasi::server
