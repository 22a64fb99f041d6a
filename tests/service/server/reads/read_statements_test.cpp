// Tests that the read side prepares each of its statements once, and keeps a bounded number.

#include <gtest/gtest.h>

#include "server/store/read_store.hpp"
#include "tests/service/support/queue_world.hpp"
#include "tests/support/temporary_directory.hpp"

namespace quasi::server::test {
namespace {

class ReadStatements : public testing::Test {
 protected:
  ReadStatements() {
    SubmitJobs command{
        .scope = user_scope(1, "phonons"), .request_id = uuid_of(1), .body_sha256 = "b"};
    for (int i = 0; i < 3; ++i) command.jobs.push_back(simple_job("j" + std::to_string(i)));
    uids_ = world_.apply(command).uids;
  }
  std::size_t listed(const JobQuery& query) {
    return store_.list(Scope::everything(), query, {.limit = 10}).size();
  }

  quasi::test::TemporaryDirectory root_;
  const std::string database_ = (root_.path() / "quasi.db").string();
  FakeClock clock_;
  SeededRandom random_{1};
  QueueWorld world_{
      ServerDisk{.files = system_files(), .root = root_.path().string(), .database = database_},
      clock_, random_, QueueOptions{}};
  std::vector<std::string> uids_;
  ReadStore store_{database_};
};

TEST_F(ReadStatements, ArePreparedOnce) {
  const auto read_all = [&] {
    for (const std::string& uid : uids_) {
      const auto view = store_.find(Scope::everything(), uid);
      ASSERT_TRUE(view);
      store_.attempts_of(view->row.id, 10);
      store_.artifacts_of(view->row.id, "", 10);
      store_.dependencies_of(Scope::everything(), view->row.id);
    }
    EXPECT_EQ(store_.worker_name("w-none"), "");
    EXPECT_TRUE(store_.workers().empty());
    EXPECT_EQ(listed({}), 3U);
    EXPECT_EQ(store_.events_after(0, 100).size(), 3U);
  };
  read_all();
  const std::int64_t prepared = store_.statements_prepared();
  EXPECT_GT(prepared, 0);
  for (int i = 0; i < 100; ++i) read_all();
  EXPECT_EQ(store_.statements_prepared(), prepared);
}

// A kept statement reads what was written since, and the values of its earlier use are gone.
TEST_F(ReadStatements, ReadTheStoreOfTheMoment) {
  JobQuery named;
  named.name_prefix = "j2";
  EXPECT_EQ(listed(named), 1U);
  named.name_prefix = "k";
  EXPECT_EQ(listed(named), 0U);
  world_.apply(SubmitJobs{.scope = user_scope(1, "phonons"),
                          .request_id = uuid_of(2),
                          .body_sha256 = "b",
                          .jobs = {simple_job("k")}});
  EXPECT_EQ(listed(named), 1U);
}

// I20: callers choose the filters of a list, and so the texts of its statements.
TEST_F(ReadStatements, AreBoundedInNumber) {
  Database database(database_, Database::Mode::kReader);
  StatementCache cache(database, 3);
  const auto value = [&](int i) {
    Rows rows(cache.get("SELECT " + std::to_string(i)).bind());
    return rows.next() ? rows->integer(0) : -1;
  };
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < 3; ++i) EXPECT_EQ(value(i), i);
  EXPECT_EQ(cache.prepared(), 3);
  EXPECT_EQ(value(0), 0);
  EXPECT_EQ(value(7), 7);
  EXPECT_EQ(cache.prepared(), 4);
  EXPECT_EQ(value(0), 0);
  EXPECT_EQ(cache.prepared(), 4) << "1 gave way, which was used longest ago";
  EXPECT_EQ(value(1), 1);
  EXPECT_EQ(cache.prepared(), 5);
}

}  // namespace
}  // namespace quasi::server::test
