#include "proto/wire/access/tls.hpp"

#include <grpc/support/log.h>
#include <openssl/bio.h>
#include <openssl/conf.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <mutex>
#include <sstream>

namespace quasi::wire {
namespace {

// gRPC calls SSL_CTX_set_min_proto_version, which would override MinProtocol. It does not touch the
// options behind the command Protocol.
// AES-128 comes first: a processor with AES instructions encrypts with it at twice the rate of
// AES-256. The server follows its own order.
constexpr char kOpenSslSettings[] = R"(
quasi = quasi_modules
[quasi_modules]
ssl_conf = quasi_ssl
[quasi_ssl]
system_default = quasi_tls
[quasi_tls]
Protocol = -SSLv3, -TLSv1, -TLSv1.1, -TLSv1.2
Ciphersuites = TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256
Options = ServerPreference
)";

/// Writes a message of gRPC's library, but not the one about a failed handshake: whoever reaches
/// the port could fill the disk with it, and a client names the reason itself.
void log_without_handshakes(gpr_log_func_args* message) {
  if (std::strstr(message->file, "ssl_transport_security") == nullptr)
    std::fprintf(stderr, "gRPC: %s\n", message->message);
}

}  // namespace

void require_tls_1_3() {
  static std::once_flag done;
  std::call_once(done, [] {
    gpr_set_log_function(log_without_handshakes);
    // The system's own configuration is read first, so that it does not replace these settings.
    OPENSSL_init_ssl(OPENSSL_INIT_LOAD_CONFIG, nullptr);
    const std::unique_ptr<CONF, decltype(&NCONF_free)> settings(NCONF_new(nullptr), NCONF_free);
    const std::unique_ptr<BIO, decltype(&BIO_free)> text(BIO_new_mem_buf(kOpenSslSettings, -1),
                                                         BIO_free);
    long line = 0;
    if (!settings || !text || NCONF_load_bio(settings.get(), text.get(), &line) != 1 ||
        CONF_modules_load(settings.get(), "quasi", 0) != 1)
      throw std::runtime_error(
          "OpenSSL does not accept TLS 1.3 as the least version; install "
          "OpenSSL 3.0 or newer");
  });
}

std::string read_certificates(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) throw TlsFileError("the file of certificates " + path + " cannot be read");
  if (certificate_fingerprint(text.str()).empty())
    throw TlsFileError("the file " + path + " holds no certificate in PEM");
  return text.str();
}

std::shared_ptr<grpc::ChannelCredentials> tls_channel_credentials(const std::string& ca_file) {
  require_tls_1_3();
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = read_certificates(ca_file);
  return grpc::SslCredentials(options);
}

std::string certificate_fingerprint(const std::string& pem) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> text(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(
      PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr), X509_free);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (!certificate || X509_digest(certificate.get(), EVP_sha256(), digest, &size) != 1) return {};
  return std::string(reinterpret_cast<const char*>(digest), size);
}

}  // namespace quasi::wire
