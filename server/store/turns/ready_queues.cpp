// The queues of waiting jobs, by pool, tenant, owner and placement. A loose scan of an index makes
// one seek for each value instead of one step for each job.

#include "server/store/query.hpp"
#include "server/store/sqlite_store.hpp"

namespace quasi::server {
namespace {

const std::string kOfOwner =
    " FROM jobs j WHERE j.pool=? AND j.tenant=? AND j.owner_id=? AND "
    "j.placement=? AND j.state=3 AND j.ready=1 ";
const std::string kReadyHeads =
    "SELECT " + std::string(kJobColumns) + kOfOwner + "ORDER BY j.priority DESC, j.id LIMIT ?";
const std::string kReadyHeadsWithin =
    "SELECT " + std::string(kJobColumns) +
    " FROM jobs j WHERE j.id IN (SELECT id FROM (SELECT "
    "j.id, j.memory_bytes, j.max_runtime_ms, j.resume, j.checkpoint_ms" +
    kOfOwner +
    "ORDER BY j.priority DESC, j.id LIMIT ?) WHERE memory_bytes<=? AND max_runtime_ms<=? "
    "AND (max_runtime_ms<=? OR (resume=1 AND checkpoint_ms BETWEEN 1 AND ?))) "
    "ORDER BY j.priority DESC, j.id LIMIT 32";

const std::string kOldestReady =
    "WITH RECURSIVE p(priority) AS ("
    " SELECT max(priority) FROM jobs WHERE pool=?1 AND tenant=?2 AND owner_id=?3"
    "   AND placement=?4 AND state=3 AND ready=1"
    " UNION ALL SELECT (SELECT max(j.priority) FROM jobs j WHERE j.pool=?1 AND j.tenant=?2"
    "   AND j.owner_id=?3 AND j.placement=?4 AND j.state=3 AND j.ready=1"
    "   AND j.priority < p.priority) FROM p WHERE p.priority IS NOT NULL) "
    "SELECT " +
    std::string(kJobColumns) +
    " FROM p JOIN jobs j ON j.id=(SELECT min(id) FROM jobs WHERE pool=?1 AND tenant=?2"
    "   AND owner_id=?3 AND placement=?4 AND state=3 AND ready=1 AND priority=p.priority)"
    " WHERE p.priority IS NOT NULL ORDER BY j.id";

}  // namespace

std::vector<std::string> SqliteStore::ready_placements(const std::string& pool) {
  return all<std::string>(
      sql("WITH RECURSIVE p(placement) AS ("
          " SELECT min(placement) FROM jobs WHERE pool=?1 AND state=3 AND ready=1"
          " UNION ALL SELECT (SELECT min(j.placement) FROM jobs j WHERE j.pool=?1 AND j.state=3"
          "   AND j.ready=1 AND j.placement > p.placement) FROM p WHERE p.placement IS NOT NULL)"
          " SELECT placement FROM p WHERE placement IS NOT NULL")
          .bind(pool),
      first_text);
}

std::vector<std::string> SqliteStore::ready_tenants(const std::string& pool) {
  return all<std::string>(
      sql("WITH RECURSIVE t(tenant) AS ("
          " SELECT min(tenant) FROM jobs WHERE pool=?1 AND state=3 AND ready=1"
          " UNION ALL SELECT (SELECT min(j.tenant) FROM jobs j WHERE j.pool=?1 AND j.state=3"
          "   AND j.ready=1 AND j.tenant > t.tenant) FROM t WHERE t.tenant IS NOT NULL)"
          " SELECT tenant FROM t WHERE tenant IS NOT NULL")
          .bind(pool),
      first_text);
}

std::vector<std::int64_t> SqliteStore::ready_owners(const std::string& pool,
                                                    const std::string& tenant) {
  return all<std::int64_t>(
      sql("WITH RECURSIVE o(owner) AS ("
          " SELECT min(owner_id) FROM jobs WHERE pool=?1 AND tenant=?2 AND state=3 AND ready=1"
          " UNION ALL SELECT (SELECT min(j.owner_id) FROM jobs j WHERE j.pool=?1 AND j.tenant=?2"
          "   AND j.state=3 AND j.ready=1 AND j.owner_id > o.owner) FROM o"
          "   WHERE o.owner IS NOT NULL)"
          " SELECT owner FROM o WHERE owner IS NOT NULL")
          .bind(pool, tenant),
      [](const Statement& row) { return row.integer(0); });
}

std::vector<std::string> SqliteStore::ready_placements_of(const OwnerQueue& queue) {
  return all<std::string>(
      sql("WITH RECURSIVE p(placement) AS ("
          " SELECT min(placement) FROM jobs WHERE pool=?1 AND tenant=?2 AND owner_id=?3"
          "   AND state=3 AND ready=1"
          " UNION ALL SELECT (SELECT min(j.placement) FROM jobs j WHERE j.pool=?1 AND j.tenant=?2"
          "   AND j.owner_id=?3 AND j.state=3 AND j.ready=1 AND j.placement > p.placement) FROM p"
          "   WHERE p.placement IS NOT NULL)"
          " SELECT placement FROM p WHERE placement IS NOT NULL")
          .bind(queue.pool, queue.tenant, queue.owner_id),
      first_text);
}

std::vector<JobRow> SqliteStore::ready_heads(const OwnerQueue& queue, const std::string& placement,
                                             std::int32_t limit) {
  return all<JobRow>(
      sql(kReadyHeads).bind(queue.pool, queue.tenant, queue.owner_id, placement, limit), read_job);
}

std::vector<JobRow> SqliteStore::oldest_ready(const OwnerQueue& queue,
                                              const std::string& placement) {
  return all<JobRow>(sql(kOldestReady).bind(queue.pool, queue.tenant, queue.owner_id, placement),
                     read_job);
}

std::vector<JobRow> SqliteStore::ready_heads_within(const OwnerQueue& queue,
                                                    const std::string& placement,
                                                    const HeadFilter& filter) {
  return all<JobRow>(sql(kReadyHeadsWithin)
                         .bind(queue.pool, queue.tenant, queue.owner_id, placement,
                               filter.most_read, filter.most_bytes, filter.most_runtime_ms,
                               filter.most_stated_ms, filter.time_left_ms / 2),
                     read_job);
}

}  // namespace quasi::server
