#include "proto/wire/text/ids.hpp"

#include <string_view>

namespace quasi::wire {
namespace {

/// Crockford's alphabet: no I, L, O, U.
constexpr std::string_view kAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
constexpr std::size_t kSize = 28;
constexpr std::size_t kTimeEnd = 12;  // after the prefix and ten characters

}  // namespace

std::string make_id(char prefix, std::int64_t wall_ms, const std::array<std::uint64_t, 2>& random) {
  std::string id(kSize, '0');
  id[0] = prefix;
  id[1] = '_';
  auto time = static_cast<std::uint64_t>(wall_ms);
  for (std::size_t i = kTimeEnd; i-- > 2; time >>= 5) id[i] = kAlphabet[time & 31];
  std::size_t i = kTimeEnd;
  for (std::uint64_t bits : random)
    for (const std::size_t end = i + 8; i < end; ++i, bits >>= 5) id[i] = kAlphabet[bits & 31];
  return id;
}

}  // namespace quasi::wire
