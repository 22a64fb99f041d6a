#pragma once

#include <string>

namespace quasi::test {

/// An answer of an HTTP server.
struct HttpAnswer {
  int status = 0;
  std::string head;  ///< status line and headers
  std::string body;
};

/// Sends one request to `HOST:PORT` and reads the answer to its end.
/// @param headers  further lines, each with CR and LF at its end
/// @param tls  speaks TLS and accepts any certificate
HttpAnswer http(const std::string& address, const std::string& path,
                const std::string& headers = "", const std::string& method = "GET",
                bool tls = false);

}  // namespace quasi::test
