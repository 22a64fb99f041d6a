#pragma once

#include <grpcpp/channel.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace quasi::test {

/// Holds the TCP address of a server under test with TLS 1.3, and tokens for its callers. The
/// files of the certificates and tokens lie in a folder of the test.
class TlsDoor {
 public:
  /// Makes a CA and a certificate for 127.0.0.1, and chooses a free port.
  explicit TlsDoor(const std::filesystem::path& folder);

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  std::string ca_file() const { return (folder_ / "ca.pem").string(); }
  /// Returns flags of a server that serves here and at `unix_address`.
  std::vector<std::string> server_flags(const std::string& unix_address) const;

  /// Makes a principal of the tenant with a number of quasi.v1.Role. @param owner  a channel of the
  /// server's owner
  /// @return the file of their token. @throws std::runtime_error with a refusal.
  std::string token_file(const std::shared_ptr<grpc::Channel>& owner, const std::string& name,
                         int role, const std::string& tenant = "default") const;
  /// Opens a channel with TLS that carries the token.
  std::shared_ptr<grpc::Channel> open(const std::string& token_file) const;
  /// Returns flags of a worker that calls here with the token.
  std::vector<std::string> worker_flags(const std::string& token_file) const;

 private:
  std::filesystem::path folder_;
  int port_ = 0;
};

}  // namespace quasi::test
