#include "server/access/certificates.hpp"

#include <arpa/inet.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <memory>
#include <stdexcept>

namespace quasi::server {
namespace {

constexpr int kSerialBytes = 16;

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("OpenSSL cannot " + what);
}

Bio memory() { return {BIO_new(BIO_s_mem()), BIO_free}; }

std::string text_of(const Bio& bio) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &bytes);
  return std::string(bytes, static_cast<std::size_t>(size));
}

Key make_key() {
  Key key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  require(key != nullptr, "make a key");
  return key;
}

void add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()), X509_EXTENSION_free);
  require(extension && X509_add_ext(certificate, extension.get(), -1) == 1,
          "write \"" + value + "\" into a certificate");
}

/// A certificate with everything but extensions, issuer and signature.
Certificate begin_certificate(const std::string& name, EVP_PKEY* key, const ValidTime& time) {
  Certificate certificate(X509_new(), X509_free);
  require(certificate != nullptr, "make a certificate");
  unsigned char serial[kSerialBytes];
  require(RAND_bytes(serial, kSerialBytes) == 1, "provide random bytes");
  serial[0] &= 0x7f;  // RFC 5280: the number is positive
  const std::unique_ptr<BIGNUM, decltype(&BN_free)> number(BN_bin2bn(serial, kSerialBytes, nullptr),
                                                           BN_free);
  BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate.get()));
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_TIME_set(X509_getm_notBefore(certificate.get()), time.from_s);
  ASN1_TIME_set(X509_getm_notAfter(certificate.get()), time.until_s);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  require(X509_set_pubkey(certificate.get(), key) == 1, "put a key into a certificate");
  return certificate;
}

KeyedCertificate sign(const Certificate& certificate, const Key& own_key, EVP_PKEY* signing_key) {
  require(X509_sign(certificate.get(), signing_key, EVP_sha256()) > 0, "sign a certificate");
  const Bio certificate_text = memory();
  const Bio key_text = memory();
  require(PEM_write_bio_X509(certificate_text.get(), certificate.get()) == 1 &&
              PEM_write_bio_PrivateKey(key_text.get(), own_key.get(), nullptr, nullptr, 0, nullptr,
                                       nullptr) == 1,
          "write PEM");
  return {.certificate_pem = text_of(certificate_text), .key_pem = text_of(key_text)};
}

/// The names in the form of the extension: "DNS:gpu.example.org,IP:10.0.0.7".
std::string alternative_names(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) {
    in6_addr ignored;
    const bool is_address = ::inet_pton(AF_INET, name.c_str(), &ignored) == 1 ||
                            ::inet_pton(AF_INET6, name.c_str(), &ignored) == 1;
    if (!list.empty()) list += ",";
    list += is_address ? "IP:" : "DNS:";
    list += name;
  }
  return list;
}

}  // namespace

KeyedCertificate make_authority(const std::string& name, const ValidTime& time) {
  const Key key = make_key();
  const Certificate certificate = begin_certificate(name, key.get(), time);
  X509* const self = certificate.get();
  require(X509_set_issuer_name(self, X509_get_subject_name(self)) == 1, "name an issuer");
  add_extension(self, self, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  add_extension(self, self, NID_key_usage, "critical,keyCertSign,cRLSign");
  add_extension(self, self, NID_subject_key_identifier, "hash");
  return sign(certificate, key, key.get());
}

KeyedCertificate make_server_certificate(const KeyedCertificate& authority,
                                         const std::vector<std::string>& names,
                                         const ValidTime& time) {
  const auto read = [](const std::string& pem) {
    return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  };
  const Certificate issuer(
      PEM_read_bio_X509(read(authority.certificate_pem).get(), nullptr, nullptr, nullptr),
      X509_free);
  const Key issuer_key(
      PEM_read_bio_PrivateKey(read(authority.key_pem).get(), nullptr, nullptr, nullptr),
      EVP_PKEY_free);
  require(issuer && issuer_key && X509_check_private_key(issuer.get(), issuer_key.get()) == 1,
          "use this certificate authority: its certificate and its key do not belong together");
  const Key key = make_key();
  const Certificate certificate = begin_certificate(names.at(0), key.get(), time);
  require(X509_set_issuer_name(certificate.get(), X509_get_subject_name(issuer.get())) == 1,
          "name an issuer");
  add_extension(certificate.get(), issuer.get(), NID_basic_constraints, "critical,CA:FALSE");
  add_extension(certificate.get(), issuer.get(), NID_key_usage, "critical,digitalSignature");
  add_extension(certificate.get(), issuer.get(), NID_ext_key_usage, "serverAuth");
  add_extension(certificate.get(), issuer.get(), NID_subject_alt_name, alternative_names(names));
  add_extension(certificate.get(), issuer.get(), NID_authority_key_identifier, "keyid");
  return sign(certificate, key, issuer_key.get());
}

}  // namespace quasi::server
