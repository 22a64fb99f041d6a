#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace quasi {

/// SHA-256 (FIPS 180-4) of bytes given in pieces. It identifies inputs in results. The engine does
/// not link OpenSSL; the service does and gets equal digests.
class Sha256 {
 public:
  Sha256();
  void update(std::string_view bytes);
  /// Returns 64 lower-case hexadecimal digits. The object cannot be used afterwards.
  std::string hex();

 private:
  void block(const unsigned char* data);
  std::array<std::uint32_t, 8> state_;
  std::array<unsigned char, 64> buffer_{};
  std::uint64_t length_ = 0;
};

}  // namespace quasi
