#include "server/store/read_store.hpp"

#include "server/queue/refused.hpp"
#include "server/store/sqlite_store.hpp"

namespace quasi::server {
namespace {

/// A WHERE clause with its parameters, numbers and texts, in order.
class Where {
 public:
  void add(const std::string& condition) {
    text_ += (text_.empty() ? " WHERE " : " AND ") + condition;
  }
  template <class Values>
  void any_of(const std::string& column, const Values& values) {
    if (values.empty()) return;
    std::string list;
    for (const auto& value : values) {
      list += list.empty() ? "?" : ",?";
      push(value);
    }
    add(column + " IN (" + list + ")");
  }
  void push(const std::string& value) {
    values_.push_back({.text = value, .number = 0, .is_text = true});
  }
  void push(std::int64_t value) {
    values_.push_back({.text = {}, .number = value, .is_text = false});
  }
  void push(JobState value) { push(static_cast<std::int64_t>(value)); }
  const std::string& text() const { return text_; }
  void bind(Statement& statement) const {
    statement.reset();
    int index = 0;
    for (const Value& value : values_) {
      ++index;
      if (value.is_text)
        statement.bind_at(index, value.text);
      else
        statement.bind_at(index, value.number);
    }
  }

 private:
  struct Value {
    std::string text;
    std::int64_t number;
    bool is_text;
  };
  std::string text_;
  std::vector<Value> values_;
};

/// The first string that sorts after all strings with this `prefix`; "" if there is none.
std::string end_of_prefix(std::string prefix) {
  while (!prefix.empty() && static_cast<unsigned char>(prefix.back()) == 0xFF) prefix.pop_back();
  if (!prefix.empty()) ++prefix.back();
  return prefix;
}

/// A query by name reads the index of names if at most this many jobs match, and sorts them by
/// submission. Otherwise it reads jobs in the order of submission and finds matches soon.
constexpr std::int32_t kFewNames = 1'024;

/// Adds the condition that a scope contains the job.
/// @param by_index  reads the indices of owners and tenants, for a scope with few jobs
void restrict(Where& where, const Scope& scope, bool by_index = false) {
  if (scope.is_everything) return;
  where.add(by_index
                ? "j.id IN (SELECT id FROM jobs INDEXED BY jobs_by_owner WHERE owner_id=? UNION "
                  "SELECT id FROM jobs INDEXED BY jobs_of_tenants WHERE tenant=? AND visibility=2)"
                : "(j.owner_id=? OR (j.tenant=? AND j.visibility=2))");
  where.push(scope.principal_id);
  where.push(scope.tenant);
}

/// Adds the conditions of a query. The caller has joined the first label if `first_label` is 1.
void restrict(Where& where, const JobQuery& query, std::size_t first_label = 0,
              bool by_name_index = false) {
  where.any_of("j.uid", query.uids);
  where.any_of("j.state", query.states);
  where.any_of("j.kind", query.kinds);
  for (std::size_t i = first_label; i < query.labels.size(); ++i) {
    const auto& [key, value] = query.labels[i];
    where.add("EXISTS (SELECT 1 FROM job_labels l WHERE l.job_id=j.id AND l.key=? AND l.value=?)");
    where.push(key);
    where.push(value);
  }
  if (by_name_index) {
    const std::string end = end_of_prefix(query.name_prefix);
    where.add("j.id IN (SELECT id FROM jobs INDEXED BY jobs_by_name WHERE name>=? AND name<?)");
    where.push(query.name_prefix);
    where.push(end);
  } else if (!query.name_prefix.empty()) {
    where.add("substr(CAST(j.name AS BLOB), 1, ?) = CAST(? AS BLOB)");
    where.push(static_cast<std::int64_t>(query.name_prefix.size()));
    where.push(query.name_prefix);
  }
  if (query.created_after_ms > 0) {
    where.add("j.created_ms > ?");
    where.push(query.created_after_ms);
  }
  if (!query.set_uid.empty()) {
    where.add("j.set_id = (SELECT id FROM job_sets WHERE uid=?)");
    where.push(query.set_uid);
  }
  if (query.created_before_ms > 0) {
    where.add("j.created_ms < ?");
    where.push(query.created_before_ms);
  }
}

const std::string kViewColumns =
    std::string(kJobColumns) +
    ", j.spec, (SELECT body FROM progress p WHERE p.job_id=j.id)"
    ", coalesce((SELECT log_bytes FROM attempts a WHERE a.job_id=j.id ORDER BY a.number DESC "
    "LIMIT 1), 0)"
    ", c.sequence, c.step, c.digest, c.size_bytes, c.fence, c.created_ms"
    ", coalesce((SELECT p.name FROM principals p WHERE p.id=j.owner_id), 'local')"
    // Whoever sees the job may see this source of its result, too.
    ", (SELECT s.uid FROM jobs s WHERE s.id=j.taken_from AND s.deleted_ms=0 AND "
    "((s.visibility=2 AND s.tenant=j.tenant) OR (j.visibility=1 AND s.owner_id=j.owner_id)))"
    ", (SELECT uid FROM job_sets WHERE id=j.set_id)";
const std::string kCheckpointJoin =
    " LEFT JOIN checkpoints c ON c.job_id=j.id AND c.sequence="
    "(SELECT max(sequence) FROM checkpoints x WHERE x.job_id=j.id)";
constexpr int kAfterJob = kJobColumnCount;

}  // namespace

ReadStore::ReadStore(const std::string& path)
    : database_(path, Database::Mode::kReader), statements_(database_, kKeptStatements) {}

ReadStore::Transaction::Transaction(ReadStore& store) : database_(store.database_) {
  database_.mark(Database::Boundary::kBegin);
}

ReadStore::Transaction::~Transaction() {
  try {
    database_.rollback_if_open();
  } catch (const SqliteError&) {
    // A failed rollback of a reader changes nothing, and its next statement reports the cause.
  }
}

JobView ReadStore::read_view(const Statement& row) {
  JobView view;
  view.row = read_job(row);
  view.spec = row.text(kAfterJob);
  view.progress = row.text(kAfterJob + 1);
  view.log_bytes = row.integer(kAfterJob + 2);
  if (!row.is_null(kAfterJob + 3))
    view.checkpoint = CheckpointRow{.sequence = row.integer(kAfterJob + 3),
                                    .step = row.integer(kAfterJob + 4),
                                    .digest = row.text(kAfterJob + 5),
                                    .size_bytes = row.integer(kAfterJob + 6),
                                    .fence = row.integer(kAfterJob + 7),
                                    .created_ms = row.integer(kAfterJob + 8)};
  view.owner = row.text(kAfterJob + 9);
  view.source_uid = row.text(kAfterJob + 10);
  view.set_uid = row.text(kAfterJob + 11);
  return view;
}

std::optional<JobView> ReadStore::find(const Scope& scope, const std::string& uid_or_prefix) {
  Statement& statement =
      sql("SELECT " + kViewColumns + ", j.summary FROM jobs j" + kCheckpointJoin +
          " WHERE j.uid >= ?4 AND j.uid < ?5 AND j.deleted_ms=0 AND " + std::string(kJobInScope) +
          " ORDER BY j.uid LIMIT 2");
  Rows rows(statement.bind(scope.is_everything, scope.principal_id, scope.tenant, uid_or_prefix,
                           end_of_prefix(uid_or_prefix)));
  if (!rows.next()) return std::nullopt;
  JobView view = read_view(*rows);
  view.summary_json = rows->text(kAfterJob + 12);
  if (rows.next())
    throw Refused(Refusal::kInvalidArgument, "FIELD_INVALID",
                  "several jobs begin with " + uid_or_prefix + ", e.g. " + view.row.uid + " and " +
                      rows->text(1) + "; give more characters");
  return view;
}

bool ReadStore::is_rare(const std::string& name_prefix) {
  const std::string end = end_of_prefix(name_prefix);
  if (end.empty()) return false;  // no prefix, or one that ends nowhere
  Statement& statement =
      sql("SELECT count(*) FROM (SELECT 1 FROM jobs INDEXED BY jobs_by_name "
          "WHERE name>=? AND name<? LIMIT ?)");
  Rows rows(statement.bind(name_prefix, end, kFewNames + 1));
  return rows.next() && rows->integer(0) <= kFewNames;
}

bool ReadStore::is_narrow(const Scope& scope) {
  Statement& statement =
      sql("SELECT (SELECT count(*) FROM (SELECT 1 FROM jobs INDEXED BY jobs_by_owner "
          "WHERE owner_id=?1 LIMIT ?3)) + (SELECT count(*) FROM (SELECT 1 FROM jobs "
          "INDEXED BY jobs_of_tenants WHERE tenant=?2 AND visibility=2 LIMIT ?3))");
  Rows rows(statement.bind(scope.principal_id, scope.tenant, kFewNames + 1));
  return rows.next() && rows->integer(0) <= kFewNames;
}

std::vector<JobView> ReadStore::list(const Scope& scope, const JobQuery& query, const Page& page) {
  const auto& [order, cursor, limit] = page;
  Where where;
  // The index of labels is sorted by job within a label, so a page of a common label is short and a
  // rare label costs nothing more.
  const bool by_label = !query.labels.empty();
  const std::string id = by_label ? "l.job_id" : "j.id";
  if (by_label) {
    where.add("l.key=?");
    where.push(query.labels.front().first);
    where.add("l.value=?");
    where.push(query.labels.front().second);
  }
  restrict(where, query, by_label ? 1 : 0, !by_label && is_rare(query.name_prefix));
  where.add("j.deleted_ms=0");
  restrict(where, scope, !by_label && !scope.is_everything && is_narrow(scope));
  const bool down = order == Order::kDescending;
  if (cursor > 0) {
    where.add(id + (down ? " < ?" : " > ?"));
    where.push(cursor);
  }
  where.push(static_cast<std::int64_t>(limit));
  Statement& statement = sql(
      "SELECT " + kViewColumns + " FROM " +
      (by_label ? "job_labels l CROSS JOIN jobs j ON j.id=l.job_id" : "jobs j") + kCheckpointJoin +
      where.text() + " ORDER BY " + id + (down ? " DESC" : " ASC") + " LIMIT ?");
  where.bind(statement);
  std::vector<JobView> views;
  Rows rows(statement);
  while (rows.next()) views.push_back(read_view(*rows));
  return views;
}

std::optional<std::string> ReadStore::uid_if_matching(const Scope& scope, const JobQuery& query,
                                                      RowId job) {
  Where where;
  restrict(where, query);
  restrict(where, scope);
  where.add("j.id = ?");
  where.push(job);
  Statement& statement = sql("SELECT j.uid FROM jobs j" + where.text());
  where.bind(statement);
  Rows rows(statement);
  if (!rows.next()) return std::nullopt;
  return rows->text(0);
}

std::optional<RowId> ReadStore::job_id_of(const Scope& scope, const std::string& uid) {
  Statement& statement = sql("SELECT id FROM jobs j WHERE uid=?4 AND " + std::string(kJobInScope));
  Rows rows(statement.bind(scope.is_everything, scope.principal_id, scope.tenant, uid));
  if (!rows.next()) return std::nullopt;
  return rows->integer(0);
}

RowId ReadStore::newest_job() {
  Statement& statement = sql("SELECT coalesce(max(id), 0) FROM jobs");
  Rows rows(statement);
  return rows.next() ? rows->integer(0) : 0;
}

std::vector<AttemptRow> ReadStore::attempts_of(RowId job, std::int32_t limit) {
  Statement& statement = sql("SELECT * FROM (SELECT " + std::string(kAttemptColumns) +
                             " FROM attempts a WHERE a.job_id=? ORDER BY a.number DESC "
                             "LIMIT ?) ORDER BY number");
  Rows rows(statement.bind(job, limit));
  std::vector<AttemptRow> attempts;
  while (rows.next()) attempts.push_back(read_attempt(*rows));
  return attempts;
}

std::vector<ArtifactRow> ReadStore::artifacts_of(RowId job, const std::string& after,
                                                 std::int32_t limit) {
  Statement& statement =
      sql("SELECT name, digest, size_bytes, media_type FROM artifacts "
          "WHERE job_id=? AND name>? ORDER BY name LIMIT ?");
  Rows rows(statement.bind(job, after, limit));
  std::vector<ArtifactRow> artifacts;
  while (rows.next())
    artifacts.push_back({.name = rows->text(0),
                         .digest = rows->text(1),
                         .size_bytes = rows->integer(2),
                         .media_type = rows->text(3)});
  return artifacts;
}

std::optional<LogView> ReadStore::log_of(RowId job, std::int32_t number) {
  Statement& statement = sql(
      "SELECT uid, number, log_bytes, outcome, id, folded_bytes FROM attempts WHERE job_id=?1 AND "
      "(?2=0 OR number=?2) AND NOT EXISTS (SELECT 1 FROM jobs WHERE id=?1 AND "
      "deleted_ms>0) ORDER BY number DESC LIMIT 1");
  Rows rows(statement.bind(job, number));
  if (!rows.next()) return std::nullopt;
  return LogView{.attempt_uid = rows->text(0),
                 .number = rows->small(1),
                 .bytes = rows->integer(2),
                 .ended = rows->integer(3) != 0,
                 .attempt = rows->integer(4),
                 .folded_bytes = rows->integer(5)};
}

std::string ReadStore::log_tail(RowId attempt, std::int64_t offset, std::int64_t size) {
  return read_log_tail(sql(kLogTailText), attempt, offset, size);
}

std::int64_t ReadStore::newest_event() {
  Statement& statement = sql("SELECT coalesce(max(seq), 0) FROM events");
  Rows rows(statement);
  return rows.next() ? rows->integer(0) : 0;
}

std::vector<EventRow> ReadStore::events_after(std::int64_t seq, std::int32_t limit) {
  Statement& statement = sql("SELECT " + std::string(kEventColumns) +
                             " FROM events e WHERE e.seq>? ORDER BY e.seq LIMIT ?");
  Rows rows(statement.bind(seq, limit));
  std::vector<EventRow> events;
  while (rows.next()) events.push_back(read_event(*rows));
  return events;
}

std::optional<std::int64_t> ReadStore::blob_size(const Scope& scope, const std::string& digest) {
  Statement& statement = sql("SELECT size_bytes FROM blobs b WHERE digest=?4 AND state=1 AND " +
                             std::string(kBlobInScope));
  Rows rows(statement.bind(scope.is_everything, scope.principal_id, scope.tenant, digest));
  if (!rows.next()) return std::nullopt;
  return rows->integer(0);
}

std::optional<std::int64_t> ReadStore::blob_created_ms(const Scope& scope,
                                                       const std::string& digest) {
  Statement& statement = sql("SELECT created_ms FROM blobs b WHERE digest=?4 AND state=1 AND " +
                             std::string(kBlobInScope));
  Rows rows(statement.bind(scope.is_everything, scope.principal_id, scope.tenant, digest));
  if (!rows.next()) return std::nullopt;
  return rows->integer(0);
}

bool ReadStore::blob_is_corrupt(const Scope& scope, const std::string& digest) {
  Statement& statement =
      sql("SELECT 1 FROM blobs b WHERE digest=?4 AND state=3 AND " + std::string(kBlobInScope));
  Rows rows(statement.bind(scope.is_everything, scope.principal_id, scope.tenant, digest));
  return rows.next();
}

std::optional<ReadStore::UploadView> ReadStore::upload(const std::string& upload_id) {
  Statement& statement =
      sql("SELECT digest, size_bytes, committed_bytes FROM uploads WHERE upload_id=?");
  Rows rows(statement.bind(upload_id));
  if (!rows.next()) return std::nullopt;
  return UploadView{
      .digest = rows->text(0), .size_bytes = rows->integer(1), .committed_bytes = rows->integer(2)};
}

std::vector<PoolCount> ReadStore::pools() {
  Statement& statement =
      sql("SELECT pool, sum(state=3), sum(state IN (4,5,6)) FROM jobs WHERE state<7 "
          "GROUP BY pool");
  Rows rows(statement);
  std::vector<PoolCount> pools;
  while (rows.next())
    pools.push_back(
        {.pool = rows->text(0), .queued = rows->integer(1), .running = rows->integer(2)});
  return pools;
}

std::int64_t ReadStore::jobs_before(const JobRow& job, std::int64_t limit) {
  // Two ranges of the index jobs_ready.
  Statement& statement = sql(
      "SELECT count(*) FROM (SELECT * FROM (SELECT 1 FROM jobs WHERE pool=?1 AND placement=?2 AND "
      "state=3 AND ready=1 AND priority>?3 LIMIT ?5) UNION ALL SELECT * FROM (SELECT 1 FROM jobs "
      "WHERE pool=?1 AND placement=?2 AND state=3 AND ready=1 AND priority=?3 AND id<?4 LIMIT ?5) "
      "LIMIT ?5)");
  statement.bind(job.pool, encode(job.placement()), job.priority, job.id, limit);
  Rows rows(statement);
  return rows.next() ? rows->integer(0) : 0;
}

std::vector<OpenSlot> ReadStore::open_slots(const Scope& scope) {
  Statement& statement =
      sql("SELECT a.worker_id, a.device_ids, CASE WHEN " + std::string(kJobInScope) +
          " THEN j.uid ELSE '' END FROM attempts a JOIN jobs j ON "
          "j.id=a.job_id WHERE a.outcome=0");
  Rows rows(statement.bind(scope.is_everything, scope.principal_id, scope.tenant));
  std::vector<OpenSlot> slots;
  while (rows.next())
    slots.push_back({.worker_id = rows->text(0),
                     .device_ids = split_lines(rows->text(1)),
                     .job_uid = rows->text(2)});
  return slots;
}

std::vector<WorkerRow> ReadStore::workers() {
  return read_workers(sql(kWorkersText), sql(kWorkerDevicesText));
}

}  // namespace quasi::server
