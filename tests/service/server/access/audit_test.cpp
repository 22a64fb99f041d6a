// Tests the audit: each act has a row in a chain of hashes, and the check names the first row that
// was changed, removed or moved.

#include <functional>
#include <sstream>

#include "server/backup/commands.hpp"
#include "server/store/schema.hpp"
#include "tests/service/support/people/access_fixture.hpp"
#include "tests/service/support/people/person.hpp"

namespace quasi::server {
namespace {

/// Holds seven rows in a database of its own.
class AuditChain : public testing::Test {
 protected:
  AuditChain() {
    prepare_schema(database_, {.path = path_, .vfs = {}, .files = system_files()});
    for (int i = 1; i <= 7; ++i) append(1'000 * i);
  }
  void append(std::int64_t time_ms) {
    store_.append({.time_ms = time_ms,
                   .principal = "ada",
                   .peer = "unix:",
                   .method = "SubmitJobs",
                   .target = "j_" + std::to_string(time_ms) + "\n",
                   .outcome = "OK",
                   .detail = "none"});
  }
  /// Changes the tables as a holder of the file can, who is stopped by no trigger.
  void tamper(const std::string& sql) {
    database_.execute(
        "DROP TRIGGER IF EXISTS audit_does_not_change;"
        "DROP TRIGGER IF EXISTS audit_goes_up_to_its_anchor;"
        "DROP TRIGGER IF EXISTS audit_anchor_moves_to_a_row;");
    database_.execute(sql.c_str());
  }
  std::string fault() { return check_audit(database_).fault; }
  void expect_fault(const std::string& words) {
    const std::string found = fault();
    EXPECT_NE(found.find(words), std::string::npos) << "found: " << found;
  }

  quasi::test::TemporaryDirectory directory_;
  const std::string path_ = directory_.path().string() + "/quasi.db";
  Database database_{path_, Database::Mode::kWriter};
  AuditStore store_{database_};
};

TEST_F(AuditChain, ASoundChainIsCounted) {
  const AuditReport report = check_audit(database_);
  EXPECT_EQ(report.fault, "");
  EXPECT_EQ(report.rows, 7);
  EXPECT_EQ(report.newest, 7);
  EXPECT_EQ(report.newest_sha256.size(), 32U);
}

// The reference is hashlib.sha256 of 32 zeros and "1:34:30003:ada5:unix:10:SubmitJobs7:j_3000\n…".
TEST_F(AuditChain, TheHashIsThatOfTheCanonicalRow) {
  const AuditRow row{.seq = 3,
                     .time_ms = 3'000,
                     .principal = "ada",
                     .peer = "unix:",
                     .method = "SubmitJobs",
                     .target = "j_3000\n",
                     .outcome = "OK",
                     .detail = "none"};
  const std::string hash = audit_hash(std::string(32, '\0'), row);
  EXPECT_EQ(wire::to_hex({reinterpret_cast<const std::uint8_t*>(hash.data()), hash.size()}),
            "7a6a4ea474e95ef982fc570e2254865bc525c95b30e9f5f5e46ce1a6859c5beb");
}

TEST_F(AuditChain, AChangedMemberIsNamed) {
  for (const std::string change :
       {"time_ms=time_ms+1", "principal='eve'", "peer='unix:eve'", "method='CancelJobs'",
        "target='j_9'", "outcome='TOKEN_INVALID'", "detail=''", "sha256=randomblob(32)",
        // The bytes are the same, and the border between two members has moved.
        "principal='adau', peer='nix:'"}) {
    database_.execute("SAVEPOINT sound");
    tamper("UPDATE audit SET " + change + " WHERE seq=3");
    EXPECT_TRUE(fault().starts_with("row 3 (")) << change << ": " << fault();
    database_.execute("ROLLBACK TO sound; RELEASE sound");
  }
  EXPECT_EQ(fault(), "");
}

// Somebody who also writes the hash of the changed row breaks the row behind it.
TEST_F(AuditChain, AChangedRowWithItsOwnHashBreaksTheNextOne) {
  const auto hash_of = [&](int seq) {
    Statement row(database_, "SELECT sha256 FROM audit WHERE seq=?");
    row.bind(seq).step();
    return row.text(0);
  };
  const AuditRow changed{.seq = 3,
                         .time_ms = 3'000,
                         .principal = "eve",
                         .peer = "unix:",
                         .method = "SubmitJobs",
                         .target = "j_3000\n",
                         .outcome = "OK",
                         .detail = "none"};
  const std::string hash = audit_hash(hash_of(2), changed);
  tamper("UPDATE audit SET principal='eve' WHERE seq=3");
  Statement(database_, "UPDATE audit SET sha256=? WHERE seq=3").bind(Statement::Blob{hash}).run();
  EXPECT_TRUE(fault().starts_with("row 4 (")) << fault();
}

TEST_F(AuditChain, RemovedRowsAreNamed) {
  database_.execute("SAVEPOINT sound");
  tamper("DELETE FROM audit WHERE seq=3");
  EXPECT_EQ(fault(), "row 3 is missing");
  tamper("DELETE FROM audit WHERE seq IN (1, 2)");
  EXPECT_EQ(fault(), "rows 1 to 3 are missing");
  database_.execute("ROLLBACK TO sound; RELEASE sound");
  tamper("DELETE FROM audit WHERE seq>=6");
  EXPECT_EQ(fault(), "rows 6 to 7 are missing at the end");
  append(8'000);
  EXPECT_EQ(fault(), "rows 6 to 7 are missing") << "later rows do not cover the gap";
}

TEST_F(AuditChain, MovedRowsAreNamed) {
  tamper(
      "UPDATE audit SET seq=-4 WHERE seq=4; UPDATE audit SET seq=4 WHERE seq=5;"
      "UPDATE audit SET seq=5 WHERE seq=-4;");
  EXPECT_TRUE(fault().starts_with("row 4 (")) << fault();
}

TEST_F(AuditChain, TheCounterAndTheAnchorAreChecked) {
  database_.execute("SAVEPOINT sound");
  tamper("DELETE FROM audit WHERE seq=7; UPDATE sqlite_sequence SET seq=3 WHERE name='audit'");
  expect_fault("stands at 3 and was set back");
  database_.execute("ROLLBACK TO sound");
  tamper("UPDATE audit_anchor SET seq=2");
  expect_fault("row 1 has the number of a row that was removed");
  tamper("DELETE FROM audit WHERE seq<=2");
  EXPECT_TRUE(fault().starts_with("row 3 (")) << "the anchor has another hash: " << fault();
  database_.execute("ROLLBACK TO sound; RELEASE sound");
}

// An anchor that no removal wrote breaks the chain at the first row, and so does one without a row.
TEST_F(AuditChain, AForgedAnchorIsFound) {
  database_.execute("SAVEPOINT sound");
  tamper("UPDATE audit_anchor SET sha256=randomblob(32)");
  EXPECT_TRUE(fault().starts_with("row 1 (")) << fault();
  database_.execute("ROLLBACK TO sound");
  tamper("DELETE FROM audit; UPDATE audit_anchor SET seq=9, sha256=randomblob(32)");
  expect_fault("the counter of rows stands at 7 and was set back");
  database_.execute("ROLLBACK TO sound");
  tamper("DROP TRIGGER audit_anchor_stays; DELETE FROM audit_anchor");
  expect_fault("the anchor of the chain is missing");
  database_.execute("ROLLBACK TO sound; RELEASE sound");
}

// A database that lost a guard of its audit is not called sound, even if no row was changed yet.
TEST_F(AuditChain, AMissingTriggerIsNamed) {
  for (const std::string name : {"audit_does_not_change", "audit_goes_up_to_its_anchor",
                                 "audit_anchor_moves_to_a_row", "audit_anchor_stays"}) {
    database_.execute("SAVEPOINT sound");
    database_.execute(("DROP TRIGGER " + name).c_str());
    expect_fault("the trigger " + name + " is missing");
    database_.execute("ROLLBACK TO sound; RELEASE sound");
  }
  EXPECT_EQ(fault(), "");
}

// A bug of the server cannot change the audit either.
TEST_F(AuditChain, TriggersKeepTheRows) {
  for (const char* sql :
       {"UPDATE audit SET principal='eve' WHERE seq=3", "DELETE FROM audit WHERE seq=7",
        "DELETE FROM audit WHERE seq=1", "UPDATE audit_anchor SET seq=2, sha256=zeroblob(32)",
        "UPDATE audit_anchor SET seq=9, sha256=zeroblob(32)", "DELETE FROM audit_anchor"})
    EXPECT_THROW(database_.execute(sql), SqliteError) << sql;
  EXPECT_EQ(check_audit(database_).rows, 7);
}

TEST_F(AuditChain, OldRowsGoAndTheRestStaysVerifiable) {
  EXPECT_EQ(store_.prune(3'001, 2), 2);
  EXPECT_EQ(store_.prune(3'001, 256), 1);
  EXPECT_EQ(store_.prune(3'001, 256), 0);
  AuditReport report = check_audit(database_);
  EXPECT_EQ(report.fault, "");
  EXPECT_EQ(report.removed_through, 3);
  EXPECT_EQ(report.rows, 4);
  EXPECT_EQ(store_.prune(1'000'000, 256), 4);
  append(9'000);
  report = check_audit(database_);
  EXPECT_EQ(report.fault, "");
  EXPECT_EQ(report.newest, 8) << "numbers are not used again";
  tamper("UPDATE audit SET principal='eve' WHERE seq=8");
  EXPECT_TRUE(fault().starts_with("row 8 (")) << fault();
}

/// Runs `quasi-server check` with these arguments. @return the exit status and the output
std::pair<int, std::string> check(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "check");
  testing::internal::CaptureStdout();
  try {
    const int status = check_command(static_cast<int>(arguments.size()), arguments.data());
    return {status, testing::internal::GetCapturedStdout()};
  } catch (...) {
    testing::internal::GetCapturedStdout();
    throw;
  }
}

/// Runs a server that asks every call for a token. Its database is read while it runs.
class Audit : public Access {
 protected:
  std::string data() const { return root_ + "/data"; }
  /// Returns the rows of a method as "PRINCIPAL TARGET OUTCOME DETAIL", one a line.
  std::string rows_of(const std::string& method) const {
    Database database(data() + "/quasi.db", Database::Mode::kReader);
    Statement rows(database,
                   "SELECT principal || ' ' || replace(target, char(10), ' ') || outcome || ' ' "
                   "|| detail FROM audit WHERE method=? ORDER BY seq");
    rows.bind(method);
    std::string text;
    while (rows.step()) text += rows.text(0) + "\n";
    return text;
  }
};

TEST_F(Audit, EachActHasItsRowAndItsLine) {
  server_.reset();
  options_.log_level = "info";
  testing::internal::CaptureStderr();
  start();
  const Person ada(wire::open_channel(tcp()), token_of("ada", v1::ROLE_USER));
  const std::string id = ada.submit();
  ASSERT_TRUE(ada.hold(id).ok());
  ASSERT_TRUE(ada.release(id).ok());
  ASSERT_TRUE(ada.reprioritise(id, -1).ok());
  ASSERT_TRUE(ada.cancel(id).ok());
  ASSERT_TRUE(ada.erase(id).ok());
  const std::string wrong = "qsi_AAAAAAAAAAAA_" + std::string(43, 'A');
  EXPECT_FALSE(capabilities(wrong).ok());
  EXPECT_TRUE(wait_for([&] { return !rows_of("GetCapabilities").empty(); }));

  for (const char* method :
       {"SubmitJobs", "HoldJobs", "ReleaseJobs", "ReprioritiseJobs", "CancelJobs", "DeleteJobs"})
    EXPECT_EQ(rows_of(method), "ada " + id + " OK \n") << method;
  EXPECT_EQ(rows_of("GetCapabilities"), " TOKEN_INVALID \n");
  EXPECT_NE(
      rows_of("SavePrincipal").find(" ada OK role=user tenant=phonons uid=none disabled=false\n"),
      std::string::npos)
      << rows_of("SavePrincipal");
  EXPECT_NE(rows_of("CreateToken").find("OK of=ada expires_ms="), std::string::npos);
  EXPECT_NE(rows_of("Enrol").find("OK role=admin"), std::string::npos);
  server_.reset();
  const std::string lines = testing::internal::GetCapturedStderr();
  for (const char* event : {"submit", "hold", "release", "reprioritise", "cancel", "delete"}) {
    const std::size_t at = lines.find("\"event\":\"" + std::string(event) + "\"");
    ASSERT_NE(at, std::string::npos) << event << ": " << lines;
    const std::string line = lines.substr(at, lines.find('\n', at) - at);
    EXPECT_NE(line.find("\"by\":\"ada\""), std::string::npos) << line;
    EXPECT_NE(line.find(id), std::string::npos) << line;
  }
  EXPECT_NE(lines.find("\"event\":\"login_failed\""), std::string::npos);
  EXPECT_NE(lines.find("\"event\":\"admin\""), std::string::npos);
  EXPECT_EQ(lines.find(wrong.substr(17)), std::string::npos) << "the secret was logged";
}

TEST_F(Audit, WhatTookNoEffectHasNoRow) {
  const Person ada(wire::open_channel(tcp()), token_of("ada", v1::ROLE_USER));
  v1::SubmitJobsRequest request;
  request.set_request_id(wire::make_uuid());
  request.add_jobs()->mutable_test()->mutable_noop();
  std::string id, again;
  ASSERT_TRUE(ada.submit(request, &id).ok());
  ASSERT_TRUE(ada.submit(request, &again).ok());
  EXPECT_EQ(again, id);
  EXPECT_FALSE(ada.cancel("j_01M83BCCD531PJRM3T2NNS17AG").ok()) << "there is no such job";
  EXPECT_FALSE(ada.erase(id).ok()) << "it has not ended";
  EXPECT_EQ(rows_of("SubmitJobs"), "ada " + id + " OK \n");
  EXPECT_EQ(rows_of("CancelJobs"), "");
  EXPECT_EQ(rows_of("DeleteJobs"), "");
}

// A peer that waits fills neither the audit nor the disk (I20).
TEST_F(Audit, APeerThatWaitsWritesNoRows) {
  server_.reset();
  options_.api.failed_logins_per_minute = 1;
  start();
  const std::string wrong = "qsi_AAAAAAAAAAAA_" + std::string(43, 'A');
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(capabilities(wrong).ok());
  token_of("ada", v1::ROLE_USER);  // The writer takes its tasks in their order.
  const std::string rows = rows_of("GetCapabilities");
  EXPECT_NE(rows, "");
  // A slow machine regains a try each minute.
  EXPECT_LT(std::count(rows.begin(), rows.end(), '\n'), 10) << rows;
}

TEST_F(Audit, TheCommandChecksARunningServer) {
  const std::string directory = "--data-directory=" + data();
  const Person ada(wire::open_channel(tcp()), token_of("ada", v1::ROLE_USER));
  ada.submit();
  auto [status, text] = check({"--audit", directory.c_str()});
  EXPECT_EQ(status, 0) << text;
  EXPECT_TRUE(text.starts_with("OK: ")) << text;
  EXPECT_NE(text.find("newest: row "), std::string::npos) << text;
  ada.submit();
  EXPECT_EQ(check({"--audit", directory.c_str()}).first, 0);

  server_.reset();
  {
    Database database(data() + "/quasi.db", Database::Mode::kWriter);
    database.execute(
        "DROP TRIGGER audit_does_not_change;"
        "UPDATE audit SET principal='eve' WHERE method='SubmitJobs'");
  }
  const auto broken = check({"--audit", directory.c_str()});
  EXPECT_EQ(broken.first, 65);
  EXPECT_TRUE(broken.second.starts_with("BROKEN: row ")) << broken.second;
  EXPECT_NE(broken.second.find("SubmitJobs by \"eve\""), std::string::npos) << broken.second;
}

TEST_F(Audit, TheCommandNamesWhatItNeeds) {
  EXPECT_EQ(check({"--no-such-flag"}).first, 2);
  EXPECT_THROW(check({"--audit", "--data-directory=/no/such/directory"}), BadConfiguration);
  server_.reset();
  Database(data() + "/quasi.db", Database::Mode::kWriter).execute("PRAGMA user_version = 3");
  const std::string directory = "--data-directory=" + data();
  EXPECT_THROW(check({"--audit", directory.c_str()}), BadConfiguration);
}

}  // namespace
}  // namespace quasi::server
