#include "server/api/tls_credentials.hpp"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "proto/wire/access/tls.hpp"
#include "server/api/local_address.hpp"

namespace quasi::server {
namespace {

constexpr unsigned int kLookSeconds = 1;

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File open_pem(const std::string& key, const std::string& path) {
  File file(std::fopen(path.c_str(), "re"), std::fclose);
  if (!file)
    throw BadConfiguration(key + ": cannot read " + path + ": " + std::strerror(errno) +
                           "; name a file in PEM, or make new ones with quasi-server init");
  return file;
}

void require_private(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) == 0 && (found.st_mode & 077) != 0)
    throw BadConfiguration("tls_key: " + path + " can be read by others; run: chmod 600 " + path);
}

void require_pair(const TlsFiles& files) {
  const File certificate_file = open_pem("tls_certificate", files.certificate);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(
      PEM_read_X509(certificate_file.get(), nullptr, nullptr, nullptr), X509_free);
  if (!certificate)
    throw BadConfiguration("tls_certificate: " + files.certificate +
                           " holds no certificate; name a file in PEM");
  const File key_file = open_pem("tls_key", files.key);
  require_private(files.key);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_PrivateKey(key_file.get(), nullptr, nullptr, nullptr), EVP_PKEY_free);
  if (!key)
    throw BadConfiguration("tls_key: " + files.key +
                           " holds no private key without a password; name a file in PEM");
  if (X509_check_private_key(certificate.get(), key.get()) != 1)
    throw BadConfiguration("tls_key: " + files.key + " is not the key of the certificate " +
                           files.certificate + "; name the files that were made together");
}

}  // namespace

std::shared_ptr<grpc::ServerCredentials> tls_server_credentials(const TlsFiles& files) {
  if (files.certificate.empty() != files.key.empty())
    throw BadConfiguration(std::string(files.key.empty() ? "tls_key" : "tls_certificate") +
                           ": is missing; tls_certificate and tls_key belong together");
  if (files.certificate.empty()) return nullptr;
  wire::require_tls_1_3();
  require_pair(files);
  const auto provider = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      files.key, files.certificate, kLookSeconds);
  grpc::experimental::TlsServerCredentialsOptions options(provider);
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  return grpc::experimental::TlsServerCredentials(options);
}

}  // namespace quasi::server
