#pragma once

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
/// @param add  registers the services
/// @throws BadConfiguration if an address is not local or cannot be bound.
Bound bind_server(const std::vector<std::string>& addresses,
                  const std::function<void(grpc::ServerBuilder&)>& add);

}  // namespace quasi::server
