#include "tests/service/server/web/http.hpp"

#include <openssl/bio.h>
#include <openssl/ssl.h>

#include <cstdlib>
#include <memory>

namespace quasi::test {
namespace {

using Stream = std::unique_ptr<BIO, decltype(&BIO_free_all)>;
using Context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;

HttpAnswer parsed(const std::string& text) {
  HttpAnswer answer;
  const std::size_t end = text.find("\r\n\r\n");
  answer.head = text.substr(0, end);
  if (end != std::string::npos) answer.body = text.substr(end + 4);
  const std::size_t blank = answer.head.find(' ');
  if (blank != std::string::npos) answer.status = std::atoi(answer.head.c_str() + blank);
  return answer;
}

}  // namespace

HttpAnswer http(const std::string& address, const std::string& path, const std::string& headers,
                const std::string& method, bool tls) {
  const Context context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  const Stream stream(tls ? BIO_new_ssl_connect(context.get()) : BIO_new_connect(address.c_str()),
                      BIO_free_all);
  BIO_set_conn_hostname(stream.get(), address.c_str());
  const std::string request = method + " " + path + " HTTP/1.1\r\nHost: " + address +
                              "\r\nConnection: close\r\n" + headers + "\r\n";
  if (BIO_write(stream.get(), request.data(), static_cast<int>(request.size())) <= 0) return {};
  std::string text;
  char buffer[16'384];
  for (int got = 0; (got = BIO_read(stream.get(), buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  return parsed(text);
}

}  // namespace quasi::test
