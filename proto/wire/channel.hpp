#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace grpc {
class Channel;
}

namespace quasi::wire {

/// Opens a channel to the server at `address`: "127.0.0.1:7460", "[::1]:7460", "localhost:7460" or
/// "unix:/run/quasi/server.sock".
///
/// The channel repeats unary calls of JobService and WorkerService on UNAVAILABLE: four attempts,
/// 0.2 s × 2 up to 5 s apart, throttled. It does not repeat streams; their readers resume them by
/// offset or token. It pings every 60 s while calls are open and accepts answers up to 64 MiB. It
/// connects at the first call, so a wrong address shows only then.
///
/// Each call carries the token of identity.hpp: the one in `token_file`, or on a Unix socket the
/// one that the server gives to this user.
/// @throws TokenFileError.
std::shared_ptr<grpc::Channel> open_channel(const std::string& address,
                                            const std::string& token_file = {});

/// True for HOST:PORT and unix:/PATH. gRPC resolves any other text as a name and retries for ever.
bool is_server_address(std::string_view address);

}  // namespace quasi::wire
