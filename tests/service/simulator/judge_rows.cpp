// Checks the rows of the database and the files beside it.

#include "server/store/check/usage_check.hpp"
#include "tests/service/simulator/judge.hpp"

namespace quasi::sim {

using server::Rows;

std::int64_t Judge::number(const char* text) {
  Rows row(sql(text));
  return row.next() ? row->integer(0) : 0;
}

void Judge::expect_zero(const std::string& invariant, const char* what, const char* text) {
  if (const std::int64_t count = number(text); count != 0)
    report_violation(invariant, std::to_string(count) + " " + what);
}

std::set<std::string> Judge::artifacts_of(std::int64_t job) {
  std::set<std::string> digests;
  Rows rows(sql("SELECT digest FROM artifacts WHERE job_id=?").bind(job));
  while (rows.next()) digests.insert(rows->text(0));
  return digests;
}

void Judge::check_database() {
  Rows integrity(sql("PRAGMA integrity_check"));
  if (!integrity.next() || integrity->text(0) != "ok")
    report_violation("I1", "the database is damaged");
  expect_zero("I6", "jobs with several open attempts",
              "SELECT count(*) FROM (SELECT job_id FROM attempts WHERE outcome=0 GROUP BY job_id "
              "HAVING count(*)>1)");
  expect_zero("I6", "jobs whose state and open attempt differ",
              "SELECT count(*) FROM jobs j WHERE (state IN (4,5,6)) <> EXISTS (SELECT 1 FROM "
              "attempts a WHERE a.id=j.open_attempt AND a.outcome=0 AND a.fence=j.fence)");
  expect_zero("I2", "jobs with several successes",
              "SELECT count(*) FROM (SELECT job_id FROM attempts WHERE outcome=1 GROUP BY job_id "
              "HAVING count(*)>1)");
  expect_zero("I8", "jobs whose events are not numbered without gaps",
              "SELECT count(*) FROM jobs j WHERE job_seq <> (SELECT count(*) FROM events e WHERE "
              "e.job_id=j.id AND e.type=1) OR job_seq <> (SELECT max(job_seq) FROM events e WHERE "
              "e.job_id=j.id)");
  expect_zero("I8", "jobs whose state is not the one of their last event",
              "SELECT count(*) FROM jobs j WHERE state <> (SELECT to_state FROM events e WHERE "
              "e.job_id=j.id AND e.job_seq=j.job_seq)");
  expect_zero("I13", "jobs whose attempts are not counted right",
              "SELECT count(*) FROM jobs j WHERE grants <> (SELECT count(*) FROM attempts a WHERE "
              "a.job_id=j.id) OR attempts <> (SELECT coalesce(sum(counted),0) FROM attempts a "
              "WHERE a.job_id=j.id) OR attempts > max_attempts OR grants > max_attempts + 20");
  expect_zero("I13", "released or cancelled attempts that count",
              "SELECT count(*) FROM attempts WHERE outcome=4 AND counted=1 AND end_state=3");
  expect_zero("I1", "blocked jobs that wait for nothing",
              "SELECT count(*) FROM jobs j WHERE state=1 AND unmet=0 AND NOT set_waits AND NOT "
              "EXISTS (SELECT 1 FROM jobs o WHERE o.action=j.action AND o.tenant=j.tenant AND "
              "o.state IN (3, 4, 5))");
  expect_zero("I1", "jobs that count the jobs that they wait for wrongly",
              "SELECT count(*) FROM jobs j WHERE state IN (1, 2) AND unmet <> (SELECT count(*) "
              "FROM job_dependencies d JOIN jobs o ON o.id=d.on_job WHERE d.job_id=j.id AND "
              "o.state<7)");
  if (const std::string fault = server::usage_fault(world_->engine.database()); !fault.empty())
    report_violation("I14", fault);
  check_told();
  check_files();
}

void Judge::check_told() {
  // Few statements over whole tables, because this runs at every start of the server.
  std::map<std::string, std::int64_t> owners;
  std::map<std::int64_t, JobState> states;
  Rows rows(sql("SELECT id, uid, owner_id, state FROM jobs"));
  while (rows.next()) {
    owners[rows->text(1)] = rows->integer(2);
    states[rows->integer(0)] = static_cast<JobState>(rows->small(3));
  }
  for (const auto& [request, uids] : answers_)
    for (const std::string& uid : uids) {
      const auto owner = owners.find(uid);
      if (owner == owners.end())
        report_violation("I1", "an acknowledged job is gone: " + uid);
      else if (owner->second != recorded_[request].owner)
        report_violation("I15", "an acknowledged job has another owner: " + uid);
    }
  std::map<std::int64_t, std::set<std::string>> artifacts;
  Rows made(sql("SELECT job_id, digest FROM artifacts"));
  while (made.next()) artifacts[made->integer(0)].insert(made->text(1));
  std::map<std::int64_t, std::int64_t> checkpoints;
  Rows newest(sql("SELECT job_id, max(sequence) FROM checkpoints GROUP BY job_id"));
  while (newest.next()) checkpoints[newest->integer(0)] = newest->integer(1);
  for (const auto& [row, job] : jobs_) {
    const auto state = states.find(row);
    if (state == states.end() || state->second != job.state)
      report_violation("I3", job, "is no longer " + std::string(server::name_of(job.state)));
    if (job.state == JobState::kSucceeded && artifacts[row] != job.artifacts)
      report_violation("I2", job, "has other artefacts than when it succeeded");
    if (job.recorded_checkpoint > checkpoints[row])
      report_violation("I1", job, "lost its acknowledged checkpoint");
  }
  check_logs();
  check_stored_sets();
}

void Judge::check_logs() {
  std::map<std::string, std::string> stored;
  world_->run([&](server::WriteContext& write) {
    Rows rows(sql("SELECT id, uid, log_bytes FROM attempts WHERE log_bytes>0"));
    while (rows.next())
      stored[rows->text(1)] =
          write.queue.read_log({.id = rows->integer(0), .uid = rows->text(1)}, 0, rows->integer(2));
  });
  for (const auto& [uid, told] : logs_)
    if (!stored[uid].starts_with(told))
      report_violation("I1", "the acknowledged log of " + uid + " is not there");
  for (const auto& [uid, log] : stored)
    if (!written_[uid].starts_with(log))
      report_violation("I7", "the log of " + uid + " is not the one that its engine wrote");
}

void Judge::check_files() {
  Rows rows(sql("SELECT digest, size_bytes FROM blobs WHERE state=1"));
  while (rows.next()) {
    const std::string digest = rows->text(0);
    if (!world_->blobs.has(digest)) {
      report_violation("I11", "the blob " + digest + " has no file");
      continue;
    }
    const auto file = world_->blobs.open(digest);
    std::string bytes(file->size(), '\0');
    file->read(0, bytes.data(), bytes.size());
    if (wire::sha256_hex(bytes) != digest ||
        static_cast<std::int64_t>(bytes.size()) != rows->integer(1))
      report_violation("I10", "the blob " + digest + " has other bytes");
  }
  expect_zero("I11", "artefacts, inputs or checkpoints without their blob",
              "SELECT count(*) FROM (SELECT digest FROM artifacts UNION SELECT digest FROM "
              "checkpoints UNION SELECT digest FROM job_inputs) WHERE digest NOT IN (SELECT digest "
              "FROM blobs WHERE state=1)");
}

}  // namespace quasi::sim
