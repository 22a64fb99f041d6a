#include "server/store/retention/excess_results.hpp"

#include <deque>
#include <functional>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "server/store/query.hpp"

namespace quasi::server {
namespace {

struct EndedJob {
  std::int64_t id = 0;
  std::string uid;
  std::int64_t owner_id = 0;
  std::int64_t ended_ms = std::numeric_limits<std::int64_t>::max();
};

struct HeldFile {
  std::string name;  ///< digest of a blob, or uid of the attempt of a log
  std::int64_t size_bytes = 0;
};

/// Counts the files that stay under one limit. A name is kept as its hash: SHA-256 and ids are
/// spread evenly, and a million names take some 40 MiB less.
class Ledger {
 public:
  /// @return true if the job's files are new here and do not fit. All older jobs with files of
  /// their own are then in excess, too.
  bool is_exceeded_by(const std::vector<HeldFile>& files, std::int64_t limit_bytes) {
    std::int64_t new_bytes = 0;
    for (const HeldFile& file : files)
      if (names_.count(std::hash<std::string>{}(file.name)) == 0) new_bytes += file.size_bytes;
    if (limit_bytes <= 0 || new_bytes == 0) return false;
    is_full_ = is_full_ || new_bytes > limit_bytes - bytes_;
    return is_full_;
  }
  void keep(const std::vector<HeldFile>& files) {
    for (const HeldFile& file : files)
      if (names_.insert(std::hash<std::string>{}(file.name)).second) bytes_ += file.size_bytes;
  }

 private:
  std::unordered_set<std::size_t> names_;
  std::int64_t bytes_ = 0;
  bool is_full_ = false;
};

/// Returns ended jobs that are older than `newer`, the newest first.
std::vector<EndedJob> page_of(Database& database, const EndedJob& newer) {
  constexpr std::int32_t kPage = 500;
  Statement statement(database,
                      "SELECT id, uid, owner_id, ended_ms FROM jobs WHERE state>=7 AND "
                      "deleted_ms=0 AND (ended_ms, id) < (?, ?) "
                      "ORDER BY ended_ms DESC, id DESC LIMIT ?");
  return all<EndedJob>(statement.bind(newer.ended_ms, newer.id, kPage), [](const Statement& row) {
    return EndedJob{.id = row.integer(0),
                    .uid = row.text(1),
                    .owner_id = row.integer(2),
                    .ended_ms = row.integer(3)};
  });
}

}  // namespace

std::vector<ExcessResult> excess_results(Database& database, const ResultLimits& limits) {
  Statement files_of(database,
                     "SELECT digest, size_bytes FROM artifacts WHERE job_id=?1 UNION ALL "
                     "SELECT digest, size_bytes FROM checkpoints WHERE job_id=?1 UNION ALL "
                     "SELECT digest, size_bytes FROM job_inputs WHERE job_id=?1 UNION ALL "
                     "SELECT uid, log_bytes FROM attempts WHERE job_id=?1");
  std::unordered_map<std::int64_t, Ledger> of_owner;
  Ledger total;
  std::deque<ExcessResult> oldest;
  EndedJob last;
  for (auto page = page_of(database, last); !page.empty(); page = page_of(database, last)) {
    last = page.back();
    for (const EndedJob& job : page) {
      const auto files = all<HeldFile>(files_of.bind(job.id), [](const Statement& row) {
        return HeldFile{.name = row.text(0), .size_bytes = row.integer(1)};
      });
      Ledger& owner = of_owner[job.owner_id];
      const bool may_go = job.ended_ms < limits.ended_before_ms;
      const bool of_user = may_go && owner.is_exceeded_by(files, limits.user_bytes);
      if (of_user || (may_go && total.is_exceeded_by(files, limits.total_bytes))) {
        oldest.push_front({.uid = job.uid, .of_user = of_user});
        if (oldest.size() > limits.most) oldest.pop_back();
        continue;
      }
      owner.keep(files);
      total.keep(files);
    }
  }
  return {oldest.begin(), oldest.end()};
}

}  // namespace quasi::server
