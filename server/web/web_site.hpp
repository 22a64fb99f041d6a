#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "server/access/directory.hpp"
#include "server/access/failed_logins.hpp"
#include "server/figures/call_figures.hpp"
#include "server/queue/clock.hpp"
#include "server/store/figures/figure_store.hpp"
#include "server/web/fleet_board.hpp"
#include "server/web/job_figures.hpp"
#include "server/web/web_server.hpp"

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
  CallFigures& calls;
  const WriterFigures& writer;
  const FileFigures& files;
  const FleetBoard& fleet;
  std::function<ServerState()> state;
  /// Notes a token that was refused, by the peer and the reason.
  std::function<void(const std::string& peer, const std::string& reason)> on_refused_login;
  bool is_loopback = true;  ///< sums are shown without a token
};

/// The pages and who may see them.
///
/// | path | without a token | with a token of the scope `read` |
/// | --- | --- | --- |
/// | /healthz, /readyz | anybody | anybody |
/// | /metrics | on loopback | yes |
///
/// Metrics name pools, kinds, workers and devices; they never name a job, an owner or a tenant.
class WebSite {
 public:
  explicit WebSite(WebParts parts);
  ~WebSite();
  WebSite(const WebSite&) = delete;
  WebSite& operator=(const WebSite&) = delete;

  WebAnswer answer(const WebRequest& request);

 private:
  /// The caller of a request, or the answer that refuses it.
  struct Visitor {
    std::optional<Caller> caller;
    std::optional<WebAnswer> refusal;
  };
  Visitor visitor_of(const WebRequest& request);
  WebAnswer ready();
  WebAnswer metrics();
  void write_store(Exposition& out);
  void run();

  WebParts parts_;
  std::mutex mutex_;  ///< guards the members below
  FigureStore store_;
  JobFigures jobs_;
  StoredFiles stored_;
  std::int64_t stored_read_ms_ = 0;
  std::condition_variable changed_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace quasi::server
