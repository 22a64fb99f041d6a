#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// Begin here: server/web serves metrics and the status page over HTTP. This class alone uses
/// libmicrohttpd; web_site.hpp says which page answers a request, and who may see it.
namespace quasi::server {

struct WebRequest {
  std::string path;
  bool refreshes = false;  ///< the query asks for a page that loads itself again
  /// The token of the header `Authorization`: of the scheme Bearer, or the password of Basic.
  std::string token;
  std::string peer;  ///< as gRPC names it, e.g. "ipv4:127.0.0.1:40312"
};

struct WebAnswer {
  unsigned int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
};

/// An HTTP server with one thread. It takes GET and HEAD, at most 64 connections of 32 KiB each,
/// and closes a connection that is silent for 15 s, so its memory is bounded (I20).
class WebServer {
 public:
  using Answer = std::function<WebAnswer(const WebRequest&)>;
  struct Place {
    std::string address;          ///< HOST:PORT with an address in numbers; port 0: any
    std::string certificate_pem;  ///< empty: plain text
    std::string key_pem;
  };

  /// Serves until it is destroyed. `answer` runs on the thread of this object.
  /// @throws BadConfiguration if the address cannot be bound or TLS cannot be set up.
  WebServer(const Place& place, Answer answer);
  ~WebServer();
  WebServer(const WebServer&) = delete;
  WebServer& operator=(const WebServer&) = delete;

  /// The address as bound.
  const std::string& address() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace quasi::server
