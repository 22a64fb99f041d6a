#pragma once

#include <cstddef>
#include <utility>

namespace google::protobuf {
class MessageLite;
}

namespace quasi {

/// Largest message between daemon and engine. A packet must fit the kernel's socket buffer as a
/// whole, and no message of engine.proto needs more.
inline constexpr std::size_t kMaxPacketBytes = 64 * 1024;

/// One end of a SOCK_SEQPACKET pair that carries one protobuf message a packet. It owns the
/// descriptor. One thread may send while another receives.
class PacketSocket {
 public:
  enum class Received {
    kMessage,
    kNothing,  ///< no packet waits (only with Wait::kNo)
    kClosed,   ///< the other side has closed the socket
    kGarbage,  ///< the packet is too long or is no such message
  };
  enum class Sent {
    kYes,
    kFull,      ///< the other side reads too slowly (only with Wait::kNo)
    kClosed,    ///< the other side has closed the socket
    kTooLarge,  ///< the message exceeds kMaxPacketBytes
  };
  enum class Wait { kNo, kYes };

  PacketSocket() = default;
  explicit PacketSocket(int descriptor) : descriptor_(descriptor) {}
  ~PacketSocket() { close(); }
  PacketSocket(PacketSocket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  PacketSocket& operator=(PacketSocket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  /// Makes two connected ends, both close-on-exec. @throws std::system_error.
  static std::pair<PacketSocket, PacketSocket> make_pair();

  Received receive(google::protobuf::MessageLite& message, Wait wait);
  Sent send(const google::protobuf::MessageLite& message, Wait wait);
  /// Sends bytes that need not be a message, for tests of the other side.
  bool send_bytes(const void* bytes, std::size_t size);

  int descriptor() const { return descriptor_; }
  void close();

 private:
  int descriptor_ = -1;
};

}  // namespace quasi
