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
/// one that the server gives to this user. With a `ca_file` the channel speaks TLS 1.3 to a server
/// whose certificate one of these CAs signed for its name; without one it speaks plain text. A Unix
/// socket always has plain text.
/// @throws TokenFileError, TlsFileError.
/// @throws std::invalid_argument for plain text to an address that is_local_address does not
/// accept.
std::shared_ptr<grpc::Channel> open_channel(const std::string& address,
                                            const std::string& token_file = {},
                                            const std::string& ca_file = {});

/// True for HOST:PORT and unix:/PATH. gRPC resolves any other text as a name and retries for ever.
bool is_server_address(std::string_view address);

/// The Unix socket at which server, worker and client of one user meet if none is named:
/// "unix:RUNTIME/quasi.sock" in the user's runtime directory, the value of XDG_RUNTIME_DIR; without
/// that variable (null or "") the one of the systemd unit, "unix:/run/quasi/server.sock".
std::string default_address(const char* runtime_directory);

/// True for a Unix socket and for a port of a loopback address: localhost, [::1], 127.0.0.0/8. Only
/// such an address is reached without TLS, because its bytes do not leave the machine.
bool is_local_address(std::string_view address);

}  // namespace quasi::wire
