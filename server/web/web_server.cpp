#include "server/web/web_server.hpp"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>

#include <cstring>
#include <string_view>

#include "server/api/local_address.hpp"
#include "server/service/log.hpp"

namespace quasi::server {
namespace {

constexpr unsigned int kConnections = 64;
constexpr std::size_t kConnectionBytes = 32 << 10;
constexpr unsigned int kSilentSeconds = 15;
constexpr std::size_t kMostTokenBytes = 4'096;

union SocketAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

/// Reads HOST:PORT, where HOST is an address in numbers or "localhost".
SocketAddress socket_address(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host == "localhost") host = "127.0.0.1";
  const auto port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
  SocketAddress result{};
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    result.v6.sin6_family = AF_INET6;
    result.v6.sin6_port = port;
    if (::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &result.v6.sin6_addr) == 1)
      return result;
  } else {
    result.v4.sin_family = AF_INET;
    result.v4.sin_port = port;
    if (::inet_pton(AF_INET, host.c_str(), &result.v4.sin_addr) == 1) return result;
  }
  throw BadConfiguration("metrics_listen: the host of \"" + address +
                         "\" is no address in numbers; write e.g. 127.0.0.1:9464 or [::1]:9464");
}

std::string peer_of(MHD_Connection* connection) {
  const MHD_ConnectionInfo* info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  if (info == nullptr || info->client_addr == nullptr) return "ipv4:0.0.0.0:0";
  char text[INET6_ADDRSTRLEN] = {};
  if (info->client_addr->sa_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(info->client_addr);
    ::inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text);
    return "ipv6:[" + std::string(text) + "]:" + std::to_string(ntohs(v6->sin6_port));
  }
  const auto* v4 = reinterpret_cast<const sockaddr_in*>(info->client_addr);
  ::inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text);
  return "ipv4:" + std::string(text) + ":" + std::to_string(ntohs(v4->sin_port));
}

std::string token_of(MHD_Connection* connection) {
  constexpr std::string_view kBearer = "Bearer ";
  const char* header = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization");
  if (header == nullptr || std::strlen(header) > kMostTokenBytes) return header ? "?" : "";
  if (std::string_view(header).starts_with(kBearer)) return header + kBearer.size();
  char* password = nullptr;
  char* user = MHD_basic_auth_get_username_password(connection, &password);
  const std::string token = password == nullptr ? "?" : password;
  if (user != nullptr) MHD_free(user);
  if (password != nullptr) MHD_free(password);
  return token;
}

/// Reads of an answer are done once the callback has queued it: libmicrohttpd keeps a copy.
MHD_Result send(MHD_Connection* connection, const WebAnswer& answer) {
  MHD_Response* response = MHD_create_response_from_buffer(
      answer.body.size(), const_cast<char*>(answer.body.data()), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  MHD_add_response_header(response, "Content-Type", answer.type.c_str());
  for (const auto& [name, value] : answer.headers)
    MHD_add_response_header(response, name.c_str(), value.c_str());
  const MHD_Result queued = MHD_queue_response(connection, answer.status, response);
  MHD_destroy_response(response);
  return queued;
}

}  // namespace

struct WebServer::Parts {
  /// The parameters after `method` belong to requests with a body.
  template <class... OfBody>
  static MHD_Result on_request(void* self, MHD_Connection* connection, const char* url,
                               const char* method, OfBody...) {
    const std::string_view verb = method;
    if (verb != "GET" && verb != "HEAD")
      return send(connection, {.status = 405,
                               .body = "this address takes GET alone\n",
                               .headers = {{"Allow", "GET, HEAD"}, {"Connection", "close"}}});
    try {
      return send(connection,
                  static_cast<Parts*>(self)->answer(
                      {.path = url,
                       .refreshes = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND,
                                                                "refresh") != nullptr,
                       .token = token_of(connection),
                       .peer = peer_of(connection)}));
    } catch (const std::exception& error) {
      log(Level::kError, "page_failed", {{"what", error.what()}});
      return send(connection, {.status = 500, .body = "the server could not make this page\n"});
    }
  }

  Answer answer;
  MHD_Daemon* daemon = nullptr;
  std::string address;
};

WebServer::WebServer(const Place& place, Answer answer) : parts_(std::make_unique<Parts>()) {
  parts_->answer = std::move(answer);
  const SocketAddress address = socket_address(place.address);
  const bool is_v6 = address.any.sa_family == AF_INET6;
  const bool has_tls = !place.certificate_pem.empty();
  std::vector<MHD_OptionItem> options{
      {MHD_OPTION_SOCK_ADDR, 0, const_cast<sockaddr*>(&address.any)},
      {MHD_OPTION_CONNECTION_LIMIT, kConnections, nullptr},
      {MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionBytes, nullptr},
      {MHD_OPTION_CONNECTION_TIMEOUT, kSilentSeconds, nullptr}};
  if (has_tls) {
    options.push_back({MHD_OPTION_HTTPS_MEM_KEY, 0, const_cast<char*>(place.key_pem.c_str())});
    options.push_back(
        {MHD_OPTION_HTTPS_MEM_CERT, 0, const_cast<char*>(place.certificate_pem.c_str())});
    options.push_back(
        {MHD_OPTION_HTTPS_PRIORITIES, 0, const_cast<char*>("NORMAL:-VERS-ALL:+VERS-TLS1.3")});
  }
  options.push_back({MHD_OPTION_END, 0, nullptr});
  const unsigned int flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO |
                             (is_v6 ? MHD_USE_IPv6 : 0U) | (has_tls ? MHD_USE_TLS : 0U);
  parts_->daemon =
      MHD_start_daemon(flags, 0, nullptr, nullptr,
                       &Parts::on_request<const char*, const char*, std::size_t*, void**>,
                       parts_.get(), MHD_OPTION_ARRAY, options.data(), MHD_OPTION_END);
  if (parts_->daemon == nullptr)
    throw BadConfiguration("metrics_listen: cannot serve at " + place.address +
                           "; free the address if it is in use, or choose another port");
  const MHD_DaemonInfo* port = MHD_get_daemon_info(parts_->daemon, MHD_DAEMON_INFO_BIND_PORT);
  parts_->address = place.address.substr(0, place.address.rfind(':') + 1) +
                    std::to_string(port == nullptr ? 0 : port->port);
}

WebServer::~WebServer() { MHD_stop_daemon(parts_->daemon); }

const std::string& WebServer::address() const { return parts_->address; }

}  // namespace quasi::server
