#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace quasi::wire {

// Values of ErrorInfo.reason for a code that is refused, beside those of status.hpp.
inline constexpr std::string_view kCodeInvalid = "CODE_INVALID";
inline constexpr std::string_view kCodeUsed = "CODE_USED";
inline constexpr std::string_view kCodeExpired = "CODE_EXPIRED";

/// Bytes of the secret of a code.
inline constexpr std::size_t kCodeSecretBytes = 32;

/// One line that lets a person or a worker in. It holds the address of the server, the fingerprint
/// of its certificate authority, and a secret that is exchanged for a token once.
struct JoinCode {
  std::string address;      ///< HOST:PORT
  std::string fingerprint;  ///< SHA-256 of the CA's certificate in DER, 32 bytes
  std::string secret;       ///< 32 random bytes
};

/// The code as text: "qsc_" and base64url.
std::string to_text(const JoinCode& code);

/// Reads a code, with white space around it. @return nothing if the text is no whole code.
std::optional<JoinCode> parse_join_code(std::string_view text);

}  // namespace quasi::wire
