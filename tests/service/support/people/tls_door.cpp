#include "tests/service/support/people/tls_door.hpp"

#include <arpa/inet.h>
#include <grpcpp/client_context.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <stdexcept>

#include "proto/wire/channel.hpp"
#include "quasi/v1/admin_service.grpc.pb.h"
#include "server/access/certificates.hpp"

namespace quasi::test {
namespace {

int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool bound = ::bind(socket, reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
                     ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  ::close(socket);
  if (!bound) throw std::runtime_error("no port is free on 127.0.0.1");
  return ntohs(address.sin_port);
}

void write_secret(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path) << text;
  std::filesystem::permissions(
      path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

void require(const grpc::Status& status, const std::string& what) {
  if (!status.ok()) throw std::runtime_error(what + ": " + status.error_message());
}

}  // namespace

TlsDoor::TlsDoor(const std::filesystem::path& folder) : folder_(folder), port_(free_port()) {
  constexpr std::int64_t kDay = 86'400;
  const std::int64_t now = std::time(nullptr);
  const server::ValidTime time{.from_s = now - kDay, .until_s = now + kDay};
  const auto authority = server::make_authority("CA of a test", time);
  const auto own = server::make_server_certificate(authority, {"127.0.0.1"}, time);
  write_secret(folder_ / "ca.pem", authority.certificate_pem);
  write_secret(folder_ / "server.key", own.key_pem);
  write_secret(folder_ / "server.pem", own.certificate_pem + authority.certificate_pem);
}

std::vector<std::string> TlsDoor::server_flags(const std::string& unix_address) const {
  return {"--listen",          unix_address + "," + address(),
          "--tls-certificate", (folder_ / "server.pem").string(),
          "--tls-key",         (folder_ / "server.key").string(),
          "--tls-ca",          ca_file()};
}

std::string TlsDoor::token_file(const std::shared_ptr<grpc::Channel>& owner,
                                const std::string& name, int role,
                                const std::string& tenant) const {
  const auto admin = v1::AdminService::NewStub(owner);
  grpc::ClientContext save, create;
  v1::SavePrincipalRequest person;
  person.mutable_principal()->set_name(name);
  person.mutable_principal()->set_role(static_cast<v1::Role>(role));
  person.mutable_principal()->set_tenant(tenant);
  v1::SavePrincipalResponse saved;
  require(admin->SavePrincipal(&save, person, &saved), "principal " + name);
  v1::CreateTokenRequest request;
  request.set_principal(name);
  v1::CreateTokenResponse created;
  require(admin->CreateToken(&create, request, &created), "token of " + name);
  write_secret(folder_ / (name + ".token"), created.token() + "\n");
  return (folder_ / (name + ".token")).string();
}

std::shared_ptr<grpc::Channel> TlsDoor::open(const std::string& token_file) const {
  return wire::open_channel(address(), token_file, ca_file());
}

std::vector<std::string> TlsDoor::worker_flags(const std::string& token_file) const {
  return {"--server", address(), "--token-file", token_file, "--ca", ca_file()};
}

}  // namespace quasi::test
