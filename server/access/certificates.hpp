#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace quasi::server {

/// A certificate and its private key, both in PEM.
struct KeyedCertificate {
  std::string certificate_pem;
  std::string key_pem;
};

/// The time in which a certificate is valid, in seconds since 1970.
struct ValidTime {
  std::int64_t from_s = 0;
  std::int64_t until_s = 0;
};

/// Makes a certificate authority with a new key on the curve P-256. It signs its own certificate,
/// which may sign certificates of servers and no further authorities (RFC 5280).
/// @throws std::runtime_error if OpenSSL fails.
KeyedCertificate make_authority(const std::string& name, const ValidTime& time);

/// Makes the certificate of a server with a new key on the curve P-256.
/// @param names  host names and IP addresses by which clients reach the server, at least one
/// @throws std::runtime_error if `authority` is unsound or OpenSSL fails.
KeyedCertificate make_server_certificate(const KeyedCertificate& authority,
                                         const std::vector<std::string>& names,
                                         const ValidTime& time);

}  // namespace quasi::server
