#pragma once

#include <optional>
#include <string>

#include "server/store/figures/figure_store.hpp"
#include "server/store/read_store.hpp"
#include "server/web/pages/job_page.hpp"
#include "server/web/pages/overview_page.hpp"
#include "server/web/web_parts.hpp"

namespace quasi::server {

/// Collects what the pages show, over a connection of its own that only reads. Every list is
/// bounded, so a page has at most some hundred kilobytes. One thread uses it.
class PageReader {
 public:
  explicit PageReader(const WebParts& parts);

  /// @param scope  of the visitor; without one, no job is read
  Overview overview(const std::optional<Scope>& scope);
  /// @return nothing if the job is absent, or outside the scope
  std::optional<JobPage> job(const Scope& scope, const std::string& uid);

 private:
  std::string tail_of(const LogView& log);

  const WebParts& parts_;
  ReadStore store_;
  FigureStore figures_;
  std::vector<UnfinishedJobs> everybody_;
  StoredFiles stored_;
  std::optional<std::int64_t> summed_ms_;  ///< monotonic; sums are read once a second at most
};

}  // namespace quasi::server
