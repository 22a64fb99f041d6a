#pragma once

#include <cstdint>

#include "workers/backend/host_device.hpp"

namespace quasi {

/// Four random words for a counter c and a key k: Philox-4x32 with ten rounds [salmon2011]. There
/// is no state, so equal counters and keys give equal words on every device and thread.
struct Philox {
  std::uint32_t word[4];

  /// Returns the words of the counter (c0, c1, c2, c3) for a key.
  QUASI_HD static Philox at(std::uint32_t c0, std::uint32_t c1, std::uint32_t c2, std::uint32_t c3,
                            std::uint32_t k0, std::uint32_t k1) {
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t a = std::uint64_t{0xD2511F53u} * c0;
      const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * c2;
      const auto next0 = static_cast<std::uint32_t>(b >> 32) ^ c1 ^ k0;
      const auto next2 = static_cast<std::uint32_t>(a >> 32) ^ c3 ^ k1;
      c1 = static_cast<std::uint32_t>(b);
      c3 = static_cast<std::uint32_t>(a);
      c0 = next0;
      c2 = next2;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
  }

  /// Returns a number uniform in [0, 1) with 53 random bits.
  QUASI_HD double unit() const { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  /// Returns an integer uniform in [0, n), n < 2^62, with a bias below n/2^64.
  QUASI_HD std::int64_t below(std::int64_t n) const {
    // The upper half of the 128-bit product is built from 32-bit halves, because not every compiler
    // has a 128-bit integer.
    const auto m = static_cast<std::uint64_t>(n);
    const std::uint64_t low = (m & 0xffffffffu) * word[0];
    const std::uint64_t middle = (m >> 32) * word[0] + (low >> 32);
    const std::uint64_t other = (m & 0xffffffffu) * word[1] + (middle & 0xffffffffu);
    return static_cast<std::int64_t>((m >> 32) * word[1] + (middle >> 32) + (other >> 32));
  }

 private:
  QUASI_HD std::uint64_t bits() const { return std::uint64_t{word[1]} << 32 | word[0]; }
};

}  // namespace quasi
