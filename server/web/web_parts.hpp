#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "server/access/call_rates.hpp"
#include "server/access/directory.hpp"
#include "server/access/failed_logins.hpp"
#include "server/figures/call_figures.hpp"
#include "server/queue/clock.hpp"
#include "server/queue/scope.hpp"
#include "server/store/log_store.hpp"
#include "server/web/fleet_board.hpp"

namespace quasi::server {

/// The state of the server at the time of a request.
struct ServerState {
  bool is_stopping = false;
  bool storage_low = false;  ///< new work is refused
  std::int64_t free_bytes = 0;
  std::int64_t total_bytes = 0;
  std::int64_t watches = 0;
  std::int64_t corrupt_files = 0;  ///< found since the start
};

/// The parts of the server that pages show. None of them makes a reader wait for the thread that
/// writes.
struct WebParts {
  std::string database_path;
  const Clock& clock;
  const Directory& directory;
  FailedLogins& failed_logins;
  CallRates& call_rates;
  CallFigures& calls;
  const WriterFigures& writer;
  const FileFigures& files;
  FleetBoard& fleet;
  LogStore& logs;
  std::function<ServerState()> state;
  /// The jobs that a caller may see, as every call of the API has them.
  std::function<Scope(const Caller&)> scope_of;
  /// Notes a token that was refused, by the peer and the reason.
  std::function<void(const std::string& peer, const std::string& reason)> on_refused_login;
  bool is_loopback = true;  ///< sums are shown without a token
};

}  // namespace quasi::server
