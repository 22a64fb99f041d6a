#include "server/queue/ids.hpp"

#include <openssl/rand.h>

#include <stdexcept>

namespace quasi::server {

std::uint64_t SystemRandom::next() {
  std::uint64_t value = 0;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(&value), sizeof value) != 1)
    throw std::runtime_error("RAND_bytes: OpenSSL provides no random bytes");
  return value;
}

std::string make_id(char prefix, std::int64_t wall_ms, RandomSource& random) {
  static constexpr char kAlphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  std::string id(28, '0');
  id[0] = prefix;
  id[1] = '_';
  auto time = static_cast<std::uint64_t>(wall_ms);
  for (std::size_t i = 11; i >= 2; --i, time >>= 5) id[i] = kAlphabet[time & 31];
  std::uint64_t bits = random.next();
  for (std::size_t i = 12; i < 28; ++i) {
    if (i == 20) bits = random.next();
    id[i] = kAlphabet[bits & 31];
    bits >>= 5;
  }
  return id;
}

}  // namespace quasi::server
