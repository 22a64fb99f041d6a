#pragma once

#include <grpcpp/security/credentials.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

/// Begin here: proto/wire/access opens a server to those who are not on its machine. tls.hpp makes
/// the credentials of a connection and finds out why a certificate is refused.
namespace quasi::wire {

/// A file of certificates cannot be used: it is missing, or holds no certificate in PEM.
struct TlsFileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Makes TLS 1.3 the least version of every TLS connection that this process opens or accepts from
/// now on. gRPC 1.51 has no setting for it and always asks OpenSSL for 1.2 or newer, so version 1.2
/// is switched off in OpenSSL's own configuration. AES-128-GCM becomes the preferred cipher of both
/// sides. gRPC's messages about failed handshakes are no
/// longer written to standard error. Call it before the first credentials are made.
/// @throws std::runtime_error if OpenSSL refuses the configuration.
void require_tls_1_3();

/// Credentials of a client that trusts the certificates in `ca_file` (PEM) and no others.
/// @throws TlsFileError.
std::shared_ptr<grpc::ChannelCredentials> tls_channel_credentials(const std::string& ca_file);

/// The reasons why a client does not accept the certificate of a server.
enum class TlsVerdict {
  kAccepted,
  kNoAnswer,      ///< no connection, or it ended during the handshake
  kNoTls,         ///< the server answers, but not in TLS 1.3
  kWrongCa,       ///< another CA signed the certificate
  kWrongName,     ///< the certificate is for other names
  kNotYetValid,   ///< its time begins later than the clock of this machine
  kExpired,       ///< its time ended before the clock of this machine
  kUnacceptable,  ///< for another reason, in `reason`
};

/// The TLS side of a server, as one handshake shows it.
struct TlsView {
  TlsVerdict verdict = TlsVerdict::kNoAnswer;
  std::string reason;                  ///< OpenSSL's words
  std::vector<std::string> names;      ///< names and addresses that the certificate is for
  std::string not_before, not_after;   ///< its time, e.g. "Nov 23 07:00:00 2026 GMT"
  std::vector<std::string> chain_pem;  ///< the certificates that the server sent, its own first
};

/// Makes one TLS handshake with the server at HOST:PORT, sends nothing and closes the connection.
/// gRPC reports every failed handshake in the same words; this function finds the reason.
/// @param ca_pem  trusted certificates; "": none, so that the verdict is kWrongCa at best
TlsView view_tls(const std::string& address, const std::string& ca_pem, std::chrono::seconds limit);

/// SHA-256 of the DER form of the first certificate in `pem`, 32 bytes; "" if it holds none.
std::string certificate_fingerprint(const std::string& pem);

/// Reads a file of certificates. @throws TlsFileError.
std::string read_certificates(const std::string& path);

}  // namespace quasi::wire
