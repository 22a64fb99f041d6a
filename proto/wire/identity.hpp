#pragma once

#include <memory>
#include <stdexcept>
#include <string>

namespace quasi::wire {

/// A token file cannot be used: it is missing, open to others, or holds no token.
struct TokenFileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Gives the token that proves who makes a call. Thread-safe.
class TokenSource {
 public:
  virtual ~TokenSource() = default;
  /// The token; "" if there is none.
  virtual std::string token() = 0;
};

/// The path of the socket beside a server's Unix socket. The server reads the user id of whoever
/// connects there and answers with a token of that user.
std::string identity_path(const std::string& socket_path);

/// The source of tokens for a server: the file, if one is named; for "unix:PATH" the socket beside
/// PATH; otherwise none (nullptr). The file is read again when it changes. A token of the socket is
/// used for five minutes.
/// @throws TokenFileError.
std::unique_ptr<TokenSource> token_source(const std::string& address,
                                          const std::string& token_file);

}  // namespace quasi::wire
