#pragma once

#include <memory>
#include <string>
#include <vector>

namespace quasi::server {

/// Holds the server's addresses while the store is opened and recovered: every call is answered
/// UNAVAILABLE / STARTING, health says NOT_SERVING. It knows no service, so nothing can reach a
/// store that is not ready. The addresses are free again when it is destroyed.
class StartingServer {
 public:
  /// @throws BadConfiguration if an address is not local or cannot be bound.
  explicit StartingServer(const std::vector<std::string>& addresses);
  ~StartingServer();
  StartingServer(const StartingServer&) = delete;
  StartingServer& operator=(const StartingServer&) = delete;

  /// The addresses as bound: port 0 is replaced by the one that was found.
  const std::vector<std::string>& addresses() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace quasi::server
