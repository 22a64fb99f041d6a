#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

namespace quasi::server {

struct Bound {
  std::unique_ptr<grpc::Server> server;
  std::vector<std::string> addresses;  ///< port 0 replaced by the one that was found
};

/// A gRPC server on these addresses, with the limits that every server of ours has. A Unix socket
/// that a killed server left is taken over: whoever holds the data directory's lock owns its
/// sockets.
/// A file in a socket's place is left alone.
/// @param keepalive_ms  a silent peer is asked for a sign of life after this
/// @param add           registers the services
/// @throws BadConfiguration if an address is not local or cannot be bound.
Bound bind_server(const std::vector<std::string>& addresses, std::int64_t keepalive_ms,
                  const std::function<void(grpc::ServerBuilder&)>& add);

/// Removes the Unix socket at `path`. @return false if something else lies there.
bool remove_socket(const std::string& path);

}  // namespace quasi::server
