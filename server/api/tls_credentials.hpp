#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>

namespace quasi::server {

/// The files for TLS, in PEM. Without a certificate the server speaks plain text and serves local
/// addresses alone.
struct TlsFiles {
  std::string certificate;  ///< the server's certificate, then those that signed it; "": no TLS
  std::string key;          ///< its private key, readable for the server's user alone
  std::string ca;           ///< the CA of the certificate, which clients trust
};

/// Credentials of TLS 1.3 for the server's TCP addresses. The files are looked at every second, and
/// new connections get the certificate that lies there then; open connections go on.
/// @return null without a certificate.
/// @throws BadConfiguration if a file is missing, open to others or no PEM, or if the key does not
///         belong to the certificate.
std::shared_ptr<grpc::ServerCredentials> tls_server_credentials(const TlsFiles& files);

}  // namespace quasi::server
