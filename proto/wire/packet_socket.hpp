#pragma once

#include <cstddef>
#include <utility>

namespace google::protobuf {
class MessageLite;
}

namespace quasi {

/// Largest message between daemon and engine. A packet must fit the kernel's socket buffer whole,
/// and nothing in engine.proto needs more.
inline constexpr std::size_t kMaxPacketBytes = 64 * 1024;

/// One end of a SOCK_SEQPACKET pair that carries one protobuf message a packet. Owns the
/// descriptor. Sending and receiving may happen on different threads; each on one at a time.
class PacketSocket {
 public:
  enum class Received {
    kMessage,
    kNothing,  ///< nothing waits (only with Wait::kNo)
    kClosed,   ///< the other side is gone
    kGarbage,  ///< a packet that is too long or no such message
  };
  enum class Sent {
    kYes,
    kFull,      ///< the other side does not keep up (only with Wait::kNo)
    kClosed,    ///< the other side is gone
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

  /// Two connected ends, both close-on-exec. @throws std::system_error.
  static std::pair<PacketSocket, PacketSocket> make_pair();

  Received receive(google::protobuf::MessageLite& message, Wait wait);
  Sent send(const google::protobuf::MessageLite& message, Wait wait);
  /// The bytes as they are: for tests of the other side.
  bool send_bytes(const void* bytes, std::size_t size);

  int descriptor() const { return descriptor_; }
  void close();

 private:
  int descriptor_ = -1;
};

}  // namespace quasi
