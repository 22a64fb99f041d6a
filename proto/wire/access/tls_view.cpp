// One TLS handshake with a server, by OpenSSL itself, to find out why gRPC refuses the server.

#include <netdb.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>

#include "proto/wire/access/tls.hpp"

namespace quasi::wire {
namespace {

template <auto Free>
struct Freer {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
template <class T, auto Free>
using Owned = std::unique_ptr<T, Freer<Free>>;

/// A TCP connection that closes itself; `value` is -1 if none could be opened.
struct Connected {
  explicit Connected(int value_) : value(value_) {}
  ~Connected() {
    if (value >= 0) ::close(value);
  }
  Connected(const Connected&) = delete;
  Connected& operator=(const Connected&) = delete;
  int value;
};

int connect_to(const std::string& host, const std::string& port, std::chrono::seconds limit) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return -1;
  const Owned<addrinfo, ::freeaddrinfo> owned(found);
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    const int descriptor = ::socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) continue;
    const timeval wait{.tv_sec = limit.count(), .tv_usec = 0};
    ::setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
    ::setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    if (::connect(descriptor, each->ai_addr, each->ai_addrlen) == 0) return descriptor;
    ::close(descriptor);
  }
  return -1;
}

std::string to_text(BIO* memory) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(memory, &bytes);
  return size > 0 ? std::string(bytes, static_cast<std::size_t>(size)) : std::string();
}

std::string to_text(const ASN1_TIME* time) {
  const Owned<BIO, BIO_free> memory(BIO_new(BIO_s_mem()));
  ASN1_TIME_print(memory.get(), time);
  return to_text(memory.get());
}

std::vector<std::string> names_of(X509* certificate) {
  std::vector<std::string> names;
  const Owned<GENERAL_NAMES, GENERAL_NAMES_free> all(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; all && i < sk_GENERAL_NAME_num(all.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(all.get(), i);
    char text[INET6_ADDRSTRLEN];
    if (name->type == GEN_DNS) {
      names.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName)),
                         static_cast<std::size_t>(ASN1_STRING_length(name->d.dNSName)));
    } else if (name->type == GEN_IPADD) {
      const int family = ASN1_STRING_length(name->d.iPAddress) == 4 ? AF_INET : AF_INET6;
      if (::inet_ntop(family, ASN1_STRING_get0_data(name->d.iPAddress), text, sizeof text))
        names.emplace_back(text);
    }
  }
  return names;
}

TlsVerdict verdict_of(long result) {
  switch (result) {
    case X509_V_OK:
      return TlsVerdict::kAccepted;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return TlsVerdict::kWrongName;
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return TlsVerdict::kNotYetValid;
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return TlsVerdict::kExpired;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return TlsVerdict::kWrongCa;
    default:
      return TlsVerdict::kUnacceptable;
  }
}

void trust(SSL_CTX* context, const std::string& ca_pem) {
  const Owned<BIO, BIO_free> text(BIO_new_mem_buf(ca_pem.data(), static_cast<int>(ca_pem.size())));
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  while (const auto certificate =
             Owned<X509, X509_free>(PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr)))
    X509_STORE_add_cert(store, certificate.get());
  ERR_clear_error();
}

void require_name(SSL* session, const std::string& host) {
  in6_addr ignored;
  const bool is_address = ::inet_pton(AF_INET, host.c_str(), &ignored) == 1 ||
                          ::inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
  if (is_address) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), host.c_str());
  } else {
    SSL_set1_host(session, host.c_str());
    SSL_set_tlsext_host_name(session, host.c_str());
  }
}

/// Reads the certificates and the verdict of a finished handshake.
void read_peer(SSL* session, TlsView& view) {
  const long result = SSL_get_verify_result(session);
  view.verdict = verdict_of(result);
  view.reason = X509_verify_cert_error_string(result);
  STACK_OF(X509)* chain = SSL_get_peer_cert_chain(session);
  for (int i = 0; i < sk_X509_num(chain); ++i) {
    const Owned<BIO, BIO_free> memory(BIO_new(BIO_s_mem()));
    PEM_write_bio_X509(memory.get(), sk_X509_value(chain, i));
    view.chain_pem.push_back(to_text(memory.get()));
  }
  if (X509* leaf = SSL_get0_peer_certificate(session)) {
    view.names = names_of(leaf);
    view.not_before = to_text(X509_get0_notBefore(leaf));
    view.not_after = to_text(X509_get0_notAfter(leaf));
  }
}

}  // namespace

TlsView view_tls(const std::string& address, const std::string& ca_pem,
                 std::chrono::seconds limit) {
  TlsView view;
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || address.starts_with("unix:")) return view;
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const Connected socket(connect_to(host, address.substr(colon + 1), limit));
  if (socket.value < 0) return view;
  const Owned<SSL_CTX, SSL_CTX_free> context(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION);
  trust(context.get(), ca_pem);
  // The handshake goes on with any certificate, because the reason is asked for after it.
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
  const unsigned char protocols[] = {2, 'h', '2'};
  SSL_CTX_set_alpn_protos(context.get(), protocols, sizeof protocols);
  const Owned<SSL, SSL_free> session(SSL_new(context.get()));
  require_name(session.get(), host);
  SSL_set_fd(session.get(), socket.value);
  ERR_clear_error();
  const int done = SSL_connect(session.get());
  if (done == 1) {
    read_peer(session.get(), view);
  } else if (SSL_get_error(session.get(), done) == SSL_ERROR_SSL) {
    view.verdict = TlsVerdict::kNoTls;
    const char* reason = ERR_reason_error_string(ERR_peek_last_error());
    view.reason = reason == nullptr ? "" : reason;
  }
  ERR_clear_error();
  return view;
}

}  // namespace quasi::wire
