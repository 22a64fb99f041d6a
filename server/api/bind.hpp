#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

namespace quasi::server {

struct Bound {
  std::unique_ptr<grpc::Server> server;
  std::vector<std::string> addresses;  ///< with port 0 replaced by the port that was bound
};

/// Users that a Unix socket admits.
enum class SocketRule {
  kGroup,  ///< its owner and its group: mode 0660
  /// its owner: mode 0600. If the socket's directory gives the socket another group than the
  /// process has (a setgid directory), that group is admitted too: mode 0660.
  kOwnerOrDirectoryGroup,
};

struct BindRules {
  std::int64_t keepalive_ms = 60'000;       ///< a silent peer is pinged after this time
  SocketRule sockets = SocketRule::kGroup;  ///< users whom the Unix sockets admit
  /// TLS of the TCP addresses; null: plain text, and local addresses alone are accepted.
  std::shared_ptr<grpc::ServerCredentials> tls = nullptr;
};

/// Builds and starts a gRPC server on these addresses, with the limits of proto/wire/limits.hpp. A
/// Unix socket that a killed server left is removed and bound again: the holder of the lock of the
/// data directory owns the sockets. Another kind of file at the socket's path is not touched.
/// @param add  registers the services
/// @throws BadConfiguration if an address cannot be bound, or is not local and has no TLS.
Bound bind_server(const std::vector<std::string>& addresses, const BindRules& rules,
                  const std::function<void(grpc::ServerBuilder&)>& add);

/// Removes the Unix socket at `path`. @return false if a file of another kind lies at `path`.
bool remove_socket(const std::string& path);

}  // namespace quasi::server
