#include "proto/wire/access/join_code.hpp"

#include "proto/wire/access/base64url.hpp"
#include "proto/wire/digest.hpp"

namespace quasi::wire {
namespace {

constexpr std::string_view kPrefix = "qsc_";
constexpr std::size_t kHashBytes = 32;
constexpr std::size_t kSumBytes = 4;

/// The first bytes of a SHA-256. They tell a code that was cut or mistyped from a whole one.
std::string sum_of(std::string_view body) { return sha256_bytes(body).substr(0, kSumBytes); }

}  // namespace

std::string to_text(const JoinCode& code) {
  const std::string body = code.fingerprint + code.secret + code.address;
  return std::string(kPrefix) + to_base64url(sum_of(body) + body);
}

std::optional<JoinCode> parse_join_code(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return std::nullopt;
  text = text.substr(first, text.find_last_not_of(kSpace) + 1 - first);
  if (!text.starts_with(kPrefix)) return std::nullopt;
  const auto bytes = from_base64url(text.substr(kPrefix.size()));
  if (!bytes || bytes->size() <= kSumBytes + 2 * kHashBytes) return std::nullopt;
  const std::string body = bytes->substr(kSumBytes);
  JoinCode code{.address = body.substr(2 * kHashBytes),
                .fingerprint = body.substr(0, kHashBytes),
                .secret = body.substr(kHashBytes, kHashBytes)};
  if (bytes->substr(0, kSumBytes) != sum_of(body)) return std::nullopt;
  return code;
}

}  // namespace quasi::wire
