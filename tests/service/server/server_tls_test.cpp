// Tests the TCP addresses: TLS 1.3, certificates that are replaced while the server runs, and the
// reasons that a client is told when it refuses a certificate.

#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <ctime>
#include <functional>
#include <thread>

#include "proto/wire/access/tls.hpp"
#include "quasi/v1/admin_service.grpc.pb.h"
#include "server/access/certificates.hpp"
#include "tests/service/support/calls_fixture.hpp"

namespace quasi::server {
namespace {

constexpr std::int64_t kDay = 86'400;

ValidTime days(std::int64_t from, std::int64_t until) {
  const std::int64_t now = std::time(nullptr);
  return {.from_s = now + from * kDay, .until_s = now + until * kDay};
}

/// A server with TLS on 127.0.0.1 and a Unix socket beside it.
class Tls : public Calls {
 protected:
  Tls() {
    server_.reset();
    options_.listen = {"unix:" + root_ + "/s", "127.0.0.1:0"};
    options_.tls = {.certificate = root_ + "/server.pem",
                    .key = root_ + "/server.key",
                    .ca = root_ + "/ca.pem"};
    install(make_server_certificate(ca_, {"127.0.0.1"}, days(-1, 1)), ca_);
  }
  /// Puts a certificate in the place of the present one. Each file is replaced as a whole.
  void install(const KeyedCertificate& own, const KeyedCertificate& authority) {
    write(options_.tls.key, own.key_pem);
    write(options_.tls.certificate, own.certificate_pem + authority.certificate_pem);
    write(options_.tls.ca, authority.certificate_pem);
  }
  static void write(const std::string& path, const std::string& text) {
    std::ofstream(path + ".part") << text;
    ::chmod((path + ".part").c_str(), 0600);
    std::filesystem::rename(path + ".part", path);
  }
  std::string tcp() const { return server_->addresses().at(1); }
  wire::TlsView view(const KeyedCertificate& authority) const {
    return wire::view_tls(tcp(), authority.certificate_pem, std::chrono::seconds(60));
  }
  /// A file with the token of a new user, made over the Unix socket.
  std::string token_file() {
    const auto admin = v1::AdminService::NewStub(channel_);
    grpc::ClientContext save, create;
    v1::SavePrincipalRequest person;
    person.mutable_principal()->set_name("ada");
    person.mutable_principal()->set_role(v1::ROLE_OPERATOR);
    person.mutable_principal()->set_tenant("phonons");
    v1::SavePrincipalResponse saved;
    EXPECT_TRUE(admin->SavePrincipal(&save, person, &saved).ok());
    v1::CreateTokenRequest request;
    request.set_principal("ada");
    v1::CreateTokenResponse created;
    EXPECT_TRUE(admin->CreateToken(&create, request, &created).ok());
    write(root_ + "/ada.token", created.token() + "\n");
    return root_ + "/ada.token";
  }
  grpc::Status list(const std::shared_ptr<grpc::Channel>& channel) {
    grpc::ClientContext context;
    limit(context);
    v1::ListJobsResponse response;
    return v1::JobService::NewStub(channel)->ListJobs(&context, {}, &response);
  }
  std::string complaint() {
    try {
      start();
    } catch (const BadConfiguration& error) {
      return error.what();
    }
    return "accepted";
  }

  const KeyedCertificate ca_ = make_authority("a CA", days(-1, 3650));
};

TEST_F(Tls, OpensTcpToAToken) {
  start();
  const auto channel = wire::open_channel(tcp(), token_file(), options_.tls.ca);
  EXPECT_EQ(list(channel).error_message(), "");
  const grpc::Status without = list(wire::open_channel(tcp(), "", options_.tls.ca));
  EXPECT_EQ(wire::reason_of(without), wire::reason::kTokenMissing) << without.error_message();
  EXPECT_TRUE(list(channel_).ok()) << "the Unix socket is the owner's";
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
  v1::ListJobsResponse response;
  const auto plain = v1::JobService::NewStub(wire::open_channel(tcp(), root_ + "/ada.token"));
  EXPECT_FALSE(plain->ListJobs(&context, {}, &response).ok()) << "plain text to a port of TLS";
}

/// Stands between a client and a server on 127.0.0.1 and begins to pass bytes after a delay, like
/// a slow network or a busy machine. It takes one connection.
class SlowRoad {
 public:
  SlowRoad(const std::string& server, std::chrono::milliseconds delay)
      : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in name{.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof name;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&name), size), 0);
    EXPECT_EQ(::listen(listener_, 8), 0);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&name), &size);
    address_ = "127.0.0.1:" + std::to_string(ntohs(name.sin_port));
    const int port = std::stoi(server.substr(server.rfind(':') + 1));
    thread_ = std::thread([this, port, delay] { carry(port, delay); });
  }
  ~SlowRoad() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  const std::string& address() const { return address_; }

 private:
  void carry(int port, std::chrono::milliseconds delay) const {
    const int client = ::accept(listener_, nullptr, nullptr);
    const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in name{.sin_family = AF_INET,
                           .sin_port = htons(static_cast<std::uint16_t>(port)),
                           .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    std::this_thread::sleep_for(delay);
    if (::connect(server, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0)
      while (pass(client, server)) {
      }
    ::close(client);
    ::close(server);
  }
  /// Passes what has come in either direction. @return false once a side has closed.
  static bool pass(int client, int server) {
    std::array<pollfd, 2> ends{pollfd{client, POLLIN, 0}, pollfd{server, POLLIN, 0}};
    std::array<char, 4096> bytes{};
    if (::poll(ends.data(), ends.size(), -1) < 0) return false;
    for (std::size_t from = 0; from < 2; ++from) {
      if (ends[from].revents == 0) continue;
      const ssize_t n = ::read(ends[from].fd, bytes.data(), bytes.size());
      if (n <= 0 ||
          ::send(ends[1 - from].fd, bytes.data(), static_cast<std::size_t>(n), MSG_NOSIGNAL) != n)
        return false;
    }
    return true;
  }

  int listener_;
  std::string address_;
  std::thread thread_;
};

// The road must outlive the channel, whose end closes the connection.
TEST_F(Tls, AHandshakeMayTakeLongerThanABackOff) {
  start();
  const std::string tokens = token_file();
  const SlowRoad road(tcp(), std::chrono::milliseconds(700));
  // Nothing repeats this call, so that the first attempt to connect must succeed. Its refusal, that
  // ada is no admin, is the answer of the server.
  const auto admin =
      v1::AdminService::NewStub(wire::open_channel(road.address(), tokens, options_.tls.ca));
  grpc::ClientContext context;
  limit(context);
  v1::CreateTokenRequest request;
  request.set_principal("ada");
  v1::CreateTokenResponse created;
  const grpc::Status status = admin->CreateToken(&context, request, &created);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << status.error_message();
}

// Workers and people are known by their tokens alone. A certificate of the server's own CA stands
// for nobody, even with the name of a worker.
TEST_F(Tls, ACertificateOfTheClientIsNoToken) {
  start();
  const KeyedCertificate own = make_server_certificate(ca_, {"worker"}, days(-1, 1));
  const auto channel =
      grpc::CreateChannel(tcp(), grpc::SslCredentials({.pem_root_certs = ca_.certificate_pem,
                                                       .pem_private_key = own.key_pem,
                                                       .pem_cert_chain = own.certificate_pem}));
  const grpc::Status without = list(channel);
  EXPECT_EQ(wire::reason_of(without), wire::reason::kTokenMissing) << without.error_message();
  v1::AcquireLeasesRequest request;
  v1::AcquireLeasesResponse granted;
  grpc::ClientContext context;
  limit(context);
  const auto worker = v1::WorkerService::NewStub(channel);
  EXPECT_EQ(wire::reason_of(worker->AcquireLeases(&context, request, &granted)),
            wire::reason::kTokenMissing);

  std::string token;
  std::ifstream(token_file()) >> token;
  grpc::ClientContext with;
  limit(with);
  with.AddMetadata("authorization", "Bearer " + token);
  v1::ListJobsResponse response;
  EXPECT_EQ(v1::JobService::NewStub(channel)->ListJobs(&with, {}, &response).error_message(), "");
}

// A port without TLS on a loopback address asks for a token too, because every user of the machine
// reaches it.
TEST_F(Tls, PlainLoopbackNeedsATokenAndPlainTextStaysOnTheMachine) {
  options_.tls = {};
  start();
  EXPECT_EQ(wire::reason_of(list(wire::open_channel(tcp()))), wire::reason::kTokenMissing);
  EXPECT_TRUE(list(wire::open_channel(tcp(), token_file())).ok());
  EXPECT_THROW(wire::open_channel("gpu.example.org:7460"), std::invalid_argument);
  EXPECT_THROW(wire::open_channel("10.0.0.1:7460", token_file()), std::invalid_argument);
  server_.reset();
  options_.listen = {"0.0.0.0:0"};
  EXPECT_NE(complaint().find("would travel in plain text"), std::string::npos) << complaint();
}

/// The cipher that a handshake with the server at `address` agrees on; "" if the handshake fails.
std::string agreed_cipher(const std::string& address,
                          const std::function<void(SSL_CTX*)>& configure) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port =
      htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  configure(context);
  const unsigned char protocols[] = {2, 'h', '2'};
  SSL_CTX_set_alpn_protos(context, protocols, sizeof protocols);
  SSL* session = SSL_new(context);
  SSL_set_fd(session, socket);
  const std::string cipher = SSL_connect(session) == 1 ? SSL_get_cipher_name(session) : "";
  SSL_free(session);
  SSL_CTX_free(context);
  ::close(socket);
  return cipher;
}

/// The result of a handshake whose newest version is TLS 1.2.
bool shakes_hands_by_tls_1_2(const std::string& address) {
  const std::string cipher = agreed_cipher(address, [](SSL_CTX* context) {
    // This process has switched 1.2 off for its own connections.
    SSL_CTX_clear_options(context, SSL_OP_NO_TLSv1_2);
    SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION);
  });
  return !cipher.empty();
}

TEST_F(Tls, IsVersion13AndNoOlder) {
  start();
  EXPECT_EQ(view(ca_).verdict, wire::TlsVerdict::kAccepted) << view(ca_).reason;
  EXPECT_FALSE(shakes_hands_by_tls_1_2(tcp()));
}

// Both sides prefer AES-128-GCM, and the server follows its own order.
TEST_F(Tls, ChoosesAes128WhereTheClientOffersIt) {
  start();
  const auto chosen = [&](const char* order) {
    return agreed_cipher(tcp(), [order](SSL_CTX* context) {
      EXPECT_EQ(SSL_CTX_set_ciphersuites(context, order), 1);
    });
  };
  EXPECT_EQ(chosen("TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256"), "TLS_AES_128_GCM_SHA256");
  EXPECT_EQ(chosen("TLS_AES_256_GCM_SHA384"), "TLS_AES_256_GCM_SHA384");
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                                  SSL_CTX_free);
  const std::unique_ptr<SSL, decltype(&SSL_free)> own(SSL_new(context.get()), SSL_free);
  EXPECT_STREQ(SSL_get_cipher_list(own.get(), 0), "TLS_AES_128_GCM_SHA256");
}

// New connections get the new certificate, and a stream of before goes on.
TEST_F(Tls, ACertificateIsReadAgainWhenItsFileChanges) {
  start();
  const std::string token = token_file();
  const auto old_channel = wire::open_channel(tcp(), token, options_.tls.ca);
  grpc::ClientContext context;
  limit(context);
  const auto stream = v1::JobService::NewStub(old_channel)->WatchJobs(&context, {});
  v1::WatchEvent message;
  ASSERT_TRUE(stream->Read(&message));

  const KeyedCertificate other = make_authority("another CA", days(-1, 3650));
  install(make_server_certificate(other, {"127.0.0.1"}, days(-1, 1)), other);
  ASSERT_TRUE(wait_for([&] { return view(other).verdict == wire::TlsVerdict::kAccepted; }));
  EXPECT_EQ(view(ca_).verdict, wire::TlsVerdict::kWrongCa);
  EXPECT_TRUE(list(wire::open_channel(tcp(), token, options_.tls.ca)).ok());

  const std::string id = submit();
  bool seen = false;
  while (!seen && stream->Read(&message))
    seen = message.DebugString().find(id) != std::string::npos;
  EXPECT_TRUE(seen) << "the stream ended before it told of " << id;
  EXPECT_TRUE(list(old_channel).ok()) << "the old connection";
  context.TryCancel();
}

TEST_F(Tls, AClientLearnsWhyItRefusesACertificate) {
  using wire::TlsVerdict;
  const auto verdict = [&](const std::string& name, const ValidTime& time) {
    server_.reset();
    install(make_server_certificate(ca_, {name}, time), ca_);
    start();
    return view(ca_);
  };
  EXPECT_EQ(verdict("127.0.0.1", days(-1, 1)).verdict, TlsVerdict::kAccepted);
  const wire::TlsView name = verdict("gpu.example.org", days(-1, 1));
  EXPECT_EQ(name.verdict, TlsVerdict::kWrongName) << name.reason;
  EXPECT_EQ(name.names, std::vector<std::string>{"gpu.example.org"});
  const wire::TlsView early = verdict("127.0.0.1", days(1, 2));
  EXPECT_EQ(early.verdict, TlsVerdict::kNotYetValid) << early.reason;
  EXPECT_NE(early.not_before.find("GMT"), std::string::npos) << early.not_before;
  EXPECT_EQ(verdict("127.0.0.1", days(-2, -1)).verdict, TlsVerdict::kExpired);
  EXPECT_EQ(view(make_authority("another CA", days(-1, 1))).verdict, TlsVerdict::kWrongCa);
  EXPECT_EQ(wire::view_tls("127.0.0.1:1", "", std::chrono::seconds(5)).verdict,
            TlsVerdict::kNoAnswer);
  server_.reset();
  options_.tls = {};
  start();
  EXPECT_EQ(view(ca_).verdict, TlsVerdict::kNoTls);
}

TEST_F(Tls, UnsoundFilesAreRefusedAtTheStart) {
  const std::string key = options_.tls.key;
  ::chmod(key.c_str(), 0640);
  EXPECT_NE(complaint().find("chmod 600 " + key), std::string::npos) << complaint();
  write(key, make_authority("other", days(-1, 1)).key_pem);
  EXPECT_NE(complaint().find("is not the key of the certificate"), std::string::npos);
  write(key, "secret");
  EXPECT_NE(complaint().find("holds no private key"), std::string::npos);
  std::filesystem::remove(key);
  EXPECT_NE(complaint().find("cannot read " + key), std::string::npos);
  options_.tls.key = "";
  EXPECT_NE(complaint().find("tls_key: is missing"), std::string::npos);
}

}  // namespace
}  // namespace quasi::server
