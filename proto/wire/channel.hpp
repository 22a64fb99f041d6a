#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace grpc {
class Channel;
}

namespace quasi::wire {

/// A channel to the server at `address`: "127.0.0.1:7460", "[::1]:7460", "localhost:7460" or
/// "unix:/run/quasi/server.sock".
///
/// Unary calls of JobService and WorkerService are repeated by the channel on UNAVAILABLE: four
/// attempts, 0.2 s × 2 up to 5 s apart, throttled. Streams are not: whoever reads one resumes it by
/// offset or token. Pings every 60 s while calls are open; answers up to 64 MiB are taken.
/// Connecting is lazy: a wrong address shows with the first call.
std::shared_ptr<grpc::Channel> open_channel(const std::string& address);

/// HOST:PORT or unix:/PATH. gRPC takes anything else for a name to look up, and tries for ever.
bool is_server_address(std::string_view address);

}  // namespace quasi::wire
