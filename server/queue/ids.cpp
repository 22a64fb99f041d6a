#include "server/queue/ids.hpp"

#include <openssl/rand.h>

#include <stdexcept>
#include <utility>

#include "proto/wire/text/ids.hpp"

namespace quasi::server {

std::uint64_t SystemRandom::next() {
  if (left_ == 0) {
    if (RAND_bytes(reinterpret_cast<unsigned char*>(numbers_.data()), sizeof numbers_) != 1)
      throw std::runtime_error("RAND_bytes: OpenSSL provides no random bytes");
    left_ = numbers_.size();
  }
  return std::exchange(numbers_[--left_], 0);
}

std::string make_id(char prefix, std::int64_t wall_ms, RandomSource& random) {
  return wire::make_id(prefix, wall_ms, {random.next(), random.next()});
}

}  // namespace quasi::server
