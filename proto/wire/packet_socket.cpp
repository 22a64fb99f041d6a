#include "proto/wire/packet_socket.hpp"

#include <google/protobuf/message_lite.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace quasi {

std::pair<PacketSocket, PacketSocket> PacketSocket::make_pair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::system_error(errno, std::generic_category(), "socketpair");
  return {PacketSocket(ends[0]), PacketSocket(ends[1])};
}

PacketSocket::Received PacketSocket::receive(google::protobuf::MessageLite& message, Wait wait) {
  // A buffer of one byte more than allowed detects packets that are too long.
  std::string bytes(kMaxPacketBytes + 1, '\0');
  ssize_t size = 0;
  do {
    size = recv(descriptor_, bytes.data(), bytes.size(), wait == Wait::kNo ? MSG_DONTWAIT : 0);
  } while (size < 0 && errno == EINTR);
  if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Received::kNothing;
  if (size <= 0) return Received::kClosed;
  if (static_cast<std::size_t>(size) > kMaxPacketBytes) return Received::kGarbage;
  return message.ParseFromArray(bytes.data(), static_cast<int>(size)) ? Received::kMessage
                                                                      : Received::kGarbage;
}

PacketSocket::Sent PacketSocket::send(const google::protobuf::MessageLite& message, Wait wait) {
  const std::string bytes = message.SerializeAsString();
  if (bytes.size() > kMaxPacketBytes) return Sent::kTooLarge;
  ssize_t size = 0;
  do {
    size = ::send(descriptor_, bytes.data(), bytes.size(),
                  MSG_NOSIGNAL | (wait == Wait::kNo ? MSG_DONTWAIT : 0));
  } while (size < 0 && errno == EINTR);
  if (size >= 0) return Sent::kYes;
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS ? Sent::kFull : Sent::kClosed;
}

bool PacketSocket::send_bytes(const void* bytes, std::size_t size) {
  return ::send(descriptor_, bytes, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
}

void PacketSocket::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

}  // namespace quasi
