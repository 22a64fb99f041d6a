#include "server/api/bind.hpp"

#include <grpc/grpc.h>
#include <grpcpp/resource_quota.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "proto/wire/limits.hpp"
#include "server/api/local_address.hpp"

namespace quasi::server {
namespace {

/// True if a server listens on the socket. Such a socket belongs to another server, even if that
/// server has another data directory.
bool is_answered(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return false;  // gRPC refuses it with its own message
  std::memcpy(address.sun_path, path.data(), path.size());
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return false;
  const bool answered =
      ::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(descriptor);
  return answered;
}

/// The mode of the socket at `path` under a rule.
mode_t mode_of(const std::string& path, SocketRule rule) {
  if (rule == SocketRule::kGroup) return 0660;
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 && found.st_gid != ::getegid() ? 0660 : 0600;
}

}  // namespace

bool remove_socket(const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return true;
  if (!S_ISSOCK(found.st_mode)) return false;
  ::unlink(path.c_str());
  return true;
}

Bound bind_server(const std::vector<std::string>& addresses, const BindRules& rules,
                  const std::function<void(grpc::ServerBuilder&)>& add) {
  // One reference to gRPC's library is kept for the whole process. Destroying the last object would
  // otherwise wait up to 10 s for gRPC's own poller at the end of the process.
  static const bool held = (grpc_init(), true);
  (void)held;
  const std::string key = rules.sockets == SocketRule::kGroup ? "listen: " : "worker_listen: ";
  grpc::ServerBuilder builder;
  std::vector<int> ports(addresses.size(), -1);
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    rules.tls ? require_address(addresses[i]) : require_local(addresses[i]);
    auto credentials = rules.tls ? rules.tls : grpc::InsecureServerCredentials();
    if (addresses[i].starts_with("unix:")) {
      const std::string path = addresses[i].substr(5);
      if (is_answered(path))
        throw BadConfiguration(key + "another server answers at " + addresses[i] +
                               "; stop it, or name another path");
      if (!remove_socket(path))
        throw BadConfiguration(key + path +
                               " is there and is no socket; move it away, or name another path");
      credentials = grpc::InsecureServerCredentials();
    }
    builder.AddListeningPort(addresses[i], credentials, &ports[i]);
  }
  grpc::ResourceQuota quota("quasi-server");
  quota.Resize(512U << 20);
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(static_cast<int>(limits::kMessageBytes));
  // gRPC would let the window of a fast connection grow to many times a chunk, in memory.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES,
                             static_cast<int>(limits::kStreamWindowBytes));
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, static_cast<int>(limits::kFrameBytes));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 256);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, static_cast<int>(limits::kMetadataBytes));
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 30'000);
  // A connection whose peer vanished silently, e.g. behind a broken tunnel, is closed and releases
  // its streams and uploads.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(rules.keepalive_ms));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  add(builder);
  Bound bound{.server = builder.BuildAndStart(), .addresses = {}};
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    std::string address = addresses[i];
    const bool is_unix = address.starts_with("unix:");
    if (!bound.server || (!is_unix && ports[i] <= 0))
      throw BadConfiguration(
          key + "cannot bind " + address +
          "; free the address if it is in use, or check that its directory exists "
          "and is writable");
    const std::string path = is_unix ? address.substr(5) : "";
    if (is_unix && ::chmod(path.c_str(), mode_of(path, rules.sockets)) != 0)
      throw BadConfiguration(key + "cannot set the mode of " + path + ": " + std::strerror(errno) +
                             "; name a path on a local file system");
    if (!is_unix) address = address.substr(0, address.rfind(':') + 1) + std::to_string(ports[i]);
    bound.addresses.push_back(address);
  }
  return bound;
}

}  // namespace quasi::server
