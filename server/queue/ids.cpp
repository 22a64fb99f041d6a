#include "server/queue/ids.hpp"

#include <openssl/rand.h>

#include <stdexcept>

#include "proto/wire/text/ids.hpp"

namespace quasi::server {

std::uint64_t SystemRandom::next() {
  std::uint64_t value = 0;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(&value), sizeof value) != 1)
    throw std::runtime_error("RAND_bytes: OpenSSL provides no random bytes");
  return value;
}

std::string make_id(char prefix, std::int64_t wall_ms, RandomSource& random) {
  return wire::make_id(prefix, wall_ms, {random.next(), random.next()});
}

}  // namespace quasi::server
