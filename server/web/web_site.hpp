#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "server/store/figures/figure_store.hpp"
#include "server/web/job_figures.hpp"
#include "server/web/page_reader.hpp"
#include "server/web/web_parts.hpp"
#include "server/web/web_server.hpp"

namespace quasi::server {

/// The pages and who may see them.
///
/// | path | without a token | with a token of the scope `read` |
/// | --- | --- | --- |
/// | /healthz, /readyz | anybody | anybody |
/// | /metrics | on loopback | yes |
/// | / | on loopback, sums and devices | and the jobs that the caller may see |
/// | /jobs/ID | no | if the caller may see the job; else it is absent |
/// | /sign-in | asks the browser for a token | as / |
/// | /style.css | anybody | anybody |
///
/// Sums name pools, kinds, workers and devices; they never name a job, an owner or a tenant.
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
  /// A page of jobs, for the caller or, without one, for everybody.
  WebAnswer page(const WebRequest& request, const std::optional<Caller>& caller);
  std::optional<WebAnswer> refusal_by_rate(const Caller& caller);
  void write_store(Exposition& out);
  void run();
  void note_jobs();

  WebParts parts_;
  PageReader reader_;  ///< of the thread that answers
  std::mutex mutex_;   ///< guards the members below
  FigureStore store_;
  JobFigures jobs_;
  StoredFiles stored_;
  std::int64_t stored_read_ms_ = 0;
  std::int64_t jobs_noted_ms_ = 0;  ///< monotonic
  std::condition_variable changed_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace quasi::server
