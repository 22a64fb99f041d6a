#include "tests/service/support/people/turns_history.hpp"

#include <algorithm>

#include "server/queue/job_state.hpp"
#include "server/store/sqlite.hpp"

namespace quasi::test {
namespace {

using server::JobState;

bool is_with_a_worker(JobState state) {
  return state == JobState::kLeased || state == JobState::kRunning ||
         state == JobState::kCancelling;
}

/// Changes by which an event alters the use of an account.
struct Change {
  std::int64_t unfinished_jobs = 0, running_gpus = 0, waiting_jobs = 0;
};

struct Use {
  std::int64_t unfinished_jobs = 0, running_gpus = 0, waiting_jobs = 0;

  void apply(const Change& change, PeakUse& peak) {
    unfinished_jobs += change.unfinished_jobs;
    running_gpus += change.running_gpus;
    waiting_jobs += change.waiting_jobs;
    peak.unfinished_jobs = std::max(peak.unfinished_jobs, unfinished_jobs);
    peak.running_gpus = std::max(peak.running_gpus, running_gpus);
  }
};

using Users = std::map<std::int64_t, Use>;

/// Adds the GPU time of the users of each tenant in which all of them had a job that waited.
void add_contests(const std::map<std::string, Users>& users_of, double elapsed_s,
                  TurnsHistory& history) {
  for (const auto& [tenant, users] : users_of) {
    if (!std::all_of(users.begin(), users.end(),
                     [](const auto& user) { return user.second.waiting_jobs > 0; }))
      continue;
    for (const auto& [user, use] : users)
      history.user_gpu_s_in_contest[tenant][user] +=
          elapsed_s * static_cast<double>(use.running_gpus);
  }
}

}  // namespace

TurnsHistory read_turns_history(const std::filesystem::path& path,
                                const std::vector<std::string>& tenants,
                                std::int64_t least_waiting) {
  server::Database database(path.string(), server::Database::Mode::kWriter);
  server::Statement rows(database,
                         "SELECT e.from_state, e.to_state, e.time_ms, j.owner_id, j.tenant, j.gpus "
                         "FROM events e JOIN jobs j ON j.id=e.job_id WHERE e.type=1 "
                         "ORDER BY e.seq");
  TurnsHistory history;
  std::map<std::string, Users> users_of;
  std::map<std::string, Use> of_tenant;
  std::int64_t before_ms = 0;
  while (rows.step()) {
    const bool is_contest = std::all_of(tenants.begin(), tenants.end(), [&](const auto& tenant) {
      return of_tenant[tenant].waiting_jobs >= least_waiting;
    });
    const std::int64_t time_ms = rows.integer(2);
    const double elapsed_s = before_ms > 0 ? 1e-3 * static_cast<double>(time_ms - before_ms) : 0.0;
    add_contests(users_of, elapsed_s, history);
    if (is_contest) {
      history.contest_s += elapsed_s;
      for (const std::string& tenant : tenants)
        history.gpu_s_in_contest[tenant] +=
            elapsed_s * static_cast<double>(of_tenant[tenant].running_gpus);
    }
    before_ms = time_ms;
    const bool is_new = rows.is_null(0);
    const auto from = static_cast<JobState>(is_new ? 0 : rows.small(0));
    const auto to = static_cast<JobState>(rows.small(1));
    const Change change{
        .unfinished_jobs = (is_new ? 1 : 0) - (server::is_final(to) ? 1 : 0),
        .running_gpus =
            rows.integer(5) * ((is_with_a_worker(to) ? 1 : 0) - (is_with_a_worker(from) ? 1 : 0)),
        .waiting_jobs = (to == JobState::kQueued ? 1 : 0) - (from == JobState::kQueued ? 1 : 0)};
    const std::int64_t owner = rows.integer(3);
    const std::string tenant = rows.text(4);
    users_of[tenant][owner].apply(change, history.of_user[owner]);
    of_tenant[tenant].apply(change, history.of_tenant[tenant]);
  }
  return history;
}

}  // namespace quasi::test
