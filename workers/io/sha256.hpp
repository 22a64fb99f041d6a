#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace quasi {

/// SHA-256 (FIPS 180-4) of bytes given in pieces: the identity of inputs in results. The engine has
/// no OpenSSL; the service, which does, gives the same digest for the same bytes.
class Sha256 {
 public:
  Sha256();
  void update(std::string_view bytes);
  /// 64 lower-case hex digits. The object is used up.
  std::string hex();

 private:
  void block(const unsigned char* data);
  std::array<std::uint32_t, 8> state_;
  std::array<unsigned char, 64> buffer_{};
  std::uint64_t length_ = 0;
};

}  // namespace quasi
