#include "server/store/audit/audit_store.hpp"

#include <optional>

#include "proto/wire/digest.hpp"
#include "server/store/query.hpp"

namespace quasi::server {
namespace {

constexpr char kColumns[] =
    "seq, time_ms, principal, peer, method, target, outcome, detail, sha256";
constexpr char kAnchor[] = "SELECT seq, sha256 FROM audit_anchor";
constexpr char kLastNumber[] = "SELECT seq FROM sqlite_sequence WHERE name='audit'";

void add(std::string& text, const std::string& member) {
  text += std::to_string(member.size()) + ":" + member;
}

std::int64_t first_number(const Statement& row) { return row.integer(0); }

AuditRow read_row(const Statement& row) {
  return {.seq = row.integer(0),
          .time_ms = row.integer(1),
          .principal = row.text(2),
          .peer = row.text(3),
          .method = row.text(4),
          .target = row.text(5),
          .outcome = row.text(6),
          .detail = row.text(7)};
}

std::string numbered(std::int64_t first, std::int64_t last) {
  return first == last
             ? "row " + std::to_string(first) + " is missing"
             : "rows " + std::to_string(first) + " to " + std::to_string(last) + " are missing";
}

/// Follows the rows behind the anchor until one does not fit.
void follow(Database& database, AuditReport& report) {
  Statement rows(database, "SELECT " + std::string(kColumns) + " FROM audit ORDER BY seq");
  std::int64_t expected = report.removed_through + 1;
  while (rows.step()) {
    const AuditRow row = read_row(rows);
    const std::string number = std::to_string(row.seq);
    if (row.seq < expected)
      report.fault = "row " + number + " has the number of a row that was removed by its age";
    else if (row.seq > expected)
      report.fault = numbered(expected, row.seq - 1);
    else if (audit_hash(report.newest_sha256, row) != rows.text(8))
      report.fault = "row " + number + " (" + row.method + " by \"" + row.principal +
                     "\") does not have the hash of its content and of the row before it: one "
                     "of the two was changed or moved";
    if (!report.fault.empty()) return;
    report.newest_sha256 = rows.text(8);
    report.newest = row.seq;
    ++report.rows;
    ++expected;
  }
  Statement last(database, kLastNumber);
  const std::int64_t written = one<std::int64_t>(last, first_number).value_or(0);
  if (written != expected - 1)
    report.fault = written >= expected ? numbered(expected, written) + " at the end"
                                       : "the counter of rows stands at " +
                                             std::to_string(written) + " and was set back";
}

/// Names the first trigger of the audit that the database lacks; "" if it has all of them.
std::string missing_trigger(Database& database) {
  for (const std::string name : {"audit_does_not_change", "audit_goes_up_to_its_anchor",
                                 "audit_anchor_moves_to_a_row", "audit_anchor_stays"}) {
    Statement found(database, "SELECT 1 FROM sqlite_master WHERE type='trigger' AND name=?");
    if (!found.bind(name).step())
      return "the trigger " + name + " is missing, which keeps the rows from being changed";
  }
  return {};
}

}  // namespace

std::string audit_hash(const std::string& previous, const AuditRow& row) {
  std::string text = previous;
  for (const std::int64_t number : {row.seq, row.time_ms}) add(text, std::to_string(number));
  for (const std::string* member :
       {&row.principal, &row.peer, &row.method, &row.target, &row.outcome, &row.detail})
    add(text, *member);
  return wire::sha256_bytes(text);
}

AuditStore::Link AuditStore::newest() {
  const auto read = [](const Statement& row) {
    return Link{.seq = row.integer(0), .sha256 = row.text(1)};
  };
  const auto row = one<Link>(
      statements_.get("SELECT seq, sha256 FROM audit ORDER BY seq DESC LIMIT 1").bind(), read);
  return row ? *row : one<Link>(statements_.get(kAnchor).bind(), read).value();
}

void AuditStore::append(AuditRow row) {
  // The counter never returns to the number of a removed row, so the removal of the newest rows
  // leaves a gap.
  row.seq = one<std::int64_t>(statements_.get(kLastNumber).bind(), first_number).value_or(0) + 1;
  const std::string hash = audit_hash(newest().sha256, row);
  statements_.get("INSERT INTO audit (" + std::string(kColumns) + ") VALUES (?,?,?,?,?,?,?,?,?)")
      .run(row.seq, row.time_ms, row.principal, row.peer, row.method, row.target, row.outcome,
           row.detail, Statement::Blob{hash});
}

std::int64_t AuditStore::prune(std::int64_t before_ms, std::int32_t limit) {
  Link anchor;
  std::int64_t count = 0;
  {
    Rows rows(
        statements_.get("SELECT seq, sha256, time_ms FROM audit ORDER BY seq LIMIT ?").bind(limit));
    while (rows.next() && rows->integer(2) < before_ms) {
      anchor = {.seq = rows->integer(0), .sha256 = rows->text(1)};
      ++count;
    }
  }
  if (count == 0) return 0;
  statements_.get("UPDATE audit_anchor SET seq=?, sha256=?")
      .run(anchor.seq, Statement::Blob{anchor.sha256});
  statements_.get("DELETE FROM audit WHERE seq<=?").run(anchor.seq);
  return count;
}

AuditReport check_audit(Database& database) {
  AuditReport report;
  database.execute("SAVEPOINT audit");
  {
    Statement anchor(database, kAnchor);
    if (anchor.step()) {
      report.removed_through = anchor.integer(0);
      report.newest_sha256 = anchor.text(1);
    } else {
      report.fault = "the anchor of the chain is missing";
    }
  }
  if (report.fault.empty()) follow(database, report);
  if (report.fault.empty()) report.fault = missing_trigger(database);
  database.execute("RELEASE audit");
  return report;
}

}  // namespace quasi::server
