// Tests which jobs take the result of an equal job, and that nothing is lost with its source.

#include <gtest/gtest.h>

#include "server/store/read_store.hpp"
#include "tests/service/server/results/results_fixture.hpp"

namespace quasi::server::test {
namespace {

TEST_F(ResultsTest, AnEqualJobEndsAtOnceWithTheResult) {
  const std::string source = computed("result");
  const Submitted later = submit(job(), user_scope(2, "phonons"));
  ASSERT_EQ(later.reused, later.uids);
  const std::string& uid = later.uids.at(0);
  const JobRow taken = row(uid);
  EXPECT_EQ(taken.state, JobState::kSucceeded);
  EXPECT_EQ(taken.taken_from, row(source).id);
  EXPECT_EQ(taken.grants, 0);
  EXPECT_EQ(digest_of(uid), digest("result"));
  EXPECT_EQ(text("SELECT summary FROM jobs WHERE uid=?", uid), "{\"of\": \"result\"} ");
  EXPECT_EQ(text("SELECT e.job_seq || e.message FROM events e JOIN jobs j ON j.id=e.job_id "
                 "WHERE j.uid=?",
                 uid),
            "1took the result of an equal job ");
  EXPECT_EQ(text("SELECT h.principal_id FROM blob_holders h JOIN artifacts a ON a.digest=h.digest "
                 "JOIN jobs j ON j.id=a.job_id WHERE j.uid=? ORDER BY 1",
                 uid),
            "1 2 ")
      << "the owner of the job does not hold its files";
  EXPECT_EQ(text("SELECT unfinished_jobs FROM usage_totals WHERE owner_id=?", "2"), "0 ");
  EXPECT_FALSE(is_taken(submit(job(CachePolicy::kUse, std::string(64, 'b')))));
}

TEST_F(ResultsTest, ResultsStayInTheirTenant) {
  computed("result");
  EXPECT_FALSE(is_taken(submit(job(), user_scope(3, "devices"))));
}

TEST_F(ResultsTest, PoliciesDecide) {
  computed("private", CachePolicy::kOff);
  EXPECT_FALSE(is_taken(submit(job()))) << "OFF wrote";
  finish("shared");
  EXPECT_FALSE(is_taken(submit(job(CachePolicy::kOff)))) << "OFF read";
  finish("other");
  EXPECT_EQ(digest_of(submit(job()).reused.at(0)), digest("shared"));
  EXPECT_FALSE(is_taken(submit(job(CachePolicy::kRefresh)))) << "REFRESH read";
  finish("fresh");
  EXPECT_EQ(digest_of(submit(job()).reused.at(0)), digest("fresh")) << "REFRESH did not replace";
}

TEST_F(ResultsTest, JobsThatDidNotSucceedOfferNothing) {
  submit(job());
  finish("", AttemptOutcome::kFailed);
  const std::string cancelled = submit(job()).uids.at(0);
  world_.apply(CancelJobs{.scope = user_scope(1, "phonons"),
                          .request_id = "",
                          .body_sha256 = "",
                          .uids = {cancelled},
                          .reason = ""});
  EXPECT_FALSE(is_taken(submit(job())));
}

TEST_F(ResultsTest, AWorkerOfAnotherVersionOffersNothing) {
  worker_.worker.version = "older";
  world_.apply(worker_);
  computed("result");
  EXPECT_FALSE(is_taken(submit(job())));
}

// The result outlives its first job, and goes with the last that has it.
TEST_F(ResultsTest, AnyJobWithTheResultOffersIt) {
  const std::string source = computed("result");
  const std::string taker = submit(job()).reused.at(0);
  erase(source);
  EXPECT_EQ(digest_of(source), "");
  EXPECT_EQ(digest_of(taker), digest("result"));
  const std::string second = submit(job()).reused.at(0);
  EXPECT_EQ(row(second).taken_from, row(taker).id);
  erase(taker);
  erase(second);
  EXPECT_FALSE(is_taken(submit(job())));
}

TEST_F(ResultsTest, ADamagedResultIsNotTaken) {
  computed("result");
  world_.run([&](WriteContext& write) {
    write.store.set_blob_state(wire::sha256_hex("result"), BlobState::kCorrupt);
  });
  EXPECT_FALSE(is_taken(submit(job())));
}

TEST_F(ResultsTest, ARepeatedSubmissionGetsTheSameAnswer) {
  computed("result");
  const SubmitJobs command{.scope = user_scope(1, "phonons"),
                           .request_id = uuid_of(7),
                           .body_sha256 = "b",
                           .jobs = {job(CachePolicy::kOff), job(), job(CachePolicy::kOff)}};
  const Submitted first = world_.apply(command);
  ASSERT_EQ(first.reused, std::vector<std::string>{first.uids.at(1)});
  const Submitted second = world_.apply(command);
  EXPECT_TRUE(second.replayed);
  EXPECT_EQ(second.uids, first.uids);
  EXPECT_EQ(second.reused, first.reused);
}

TEST_F(ResultsTest, ATakenResultNeedsNoPlaceInTheQueue) {
  computed("result");
  world_.apply(
      SetAllowance{.account = Account::of_principal(1), .allowance = {.unfinished_jobs = 0}});
  EXPECT_TRUE(is_taken(submit(job())));
  EXPECT_THROW(submit(job(CachePolicy::kOff)), Refused);
}

// What the queue never does, the database refuses: artefacts that no equal job has, results of
// other jobs, and another action afterwards.
TEST_F(ResultsTest, TheDatabaseRefusesForeignResults) {
  const std::string source = computed("result");
  const std::string taker = submit(job()).reused.at(0);
  const std::string waiting = submit(job(CachePolicy::kOff)).uids.at(0);
  const auto refused = [&](const std::string& sql, const std::string& uid) {
    Statement statement(world_.engine.database(), sql);
    try {
      statement.bind(uid).run();
    } catch (const SqliteError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const auto insert = [](const std::string& digest) {
    return "INSERT INTO artifacts SELECT id, 'more', '" + digest + "', 6, '' FROM jobs WHERE uid=?";
  };
  EXPECT_NE(refused(insert(std::string(64, 'c')), taker).find("I2"), std::string::npos);
  EXPECT_NE(refused(insert(wire::sha256_hex("result")), source).find("I2"), std::string::npos);
  EXPECT_NE(refused("INSERT INTO results SELECT 'tenant phonons', action, id FROM jobs WHERE uid=?",
                    waiting)
                .find("I2"),
            std::string::npos);
  EXPECT_NE(refused("INSERT OR REPLACE INTO results SELECT 'tenant devices', action, id FROM jobs "
                    "WHERE uid=?",
                    source)
                .find("I2"),
            std::string::npos);
  EXPECT_NE(refused("UPDATE jobs SET taken_from=NULL WHERE uid=?", taker).find("I1"),
            std::string::npos);
}

// A reader of a job learns the id of its source only if they may see that job, too.
TEST_F(ResultsTest, TheSourceIsNamedToWhoMaySeeIt) {
  const std::string path = root_.path() / "queue.db";
  QueueWorld stored{ServerDisk{.files = system_files(), .root = root_.path(), .database = path},
                    clock_, random_, options()};
  stored.apply(worker_);
  const auto send = [&](const Scope& scope, Visibility visibility, CachePolicy cache) {
    NewJob asked = job(cache);
    asked.row.visibility = visibility;
    return stored
        .apply(SubmitJobs{
            .scope = scope, .request_id = uuid_of(++calls_), .body_sha256 = "b", .jobs = {asked}})
        .uids.at(0);
  };
  const auto compute = [&](Visibility visibility) {
    const std::string uid = send(user_scope(1, "phonons"), visibility, CachePolicy::kRefresh);
    const Grant grant = stored.apply(simple_acquire(worker_, ++calls_, 1)).grants.at(0);
    stored.apply(StartAttempt{key_of(grant)});
    CompleteAttempt report;
    report.key = key_of(grant);
    report.report_digest = uid;
    stored.apply(report);
    return uid;
  };
  ReadStore reader(path);
  const auto source_of = [&](const std::string& uid) {
    return reader.find(Scope::everything(), uid).value().source_uid;
  };
  const auto take = [&](std::int64_t owner, Visibility visibility) {
    return source_of(send(user_scope(owner, "phonons"), visibility, CachePolicy::kUse));
  };
  const std::string hidden = compute(Visibility::kPrivate);
  EXPECT_EQ(take(1, Visibility::kPrivate), hidden);
  EXPECT_EQ(take(2, Visibility::kPrivate), "");
  EXPECT_EQ(take(1, Visibility::kTenant), "") << "the tenant may see the job, not its source";
  const std::string open = compute(Visibility::kTenant);
  EXPECT_EQ(take(2, Visibility::kPrivate), open);
  EXPECT_EQ(take(1, Visibility::kTenant), open);
}

// The same story under each setting of the server: a colleague and the owner submit again.
TEST(ResultSharing, IsAsTheServerSays) {
  const auto taken = [](ResultSharing sharing, std::int64_t principal) {
    const quasi::test::TemporaryDirectory root;
    FakeClock clock;
    SeededRandom random{1};
    QueueOptions options;
    options.results = {.sharing = sharing, .version = "test"};
    QueueWorld world{ServerDisk{.files = system_files(), .root = root.path()}, clock, random,
                     options};
    const RegisterWorker worker = simple_worker("w_1", 1, 10);
    world.apply(worker);
    NewJob job = simple_job("job");
    job.row.action = kAction;
    job.row.cache = CachePolicy::kUse;
    const auto submit = [&](std::uint64_t request, std::int64_t owner) {
      return world.apply(SubmitJobs{.scope = user_scope(owner, "phonons"),
                                    .request_id = uuid_of(request),
                                    .body_sha256 = "b",
                                    .jobs = {job}});
    };
    submit(1, 1);
    const Grant grant = world.apply(simple_acquire(worker, 2, 1)).grants.at(0);
    world.apply(StartAttempt{key_of(grant)});
    world.apply(CompleteAttempt{.key = key_of(grant),
                                .outcome = AttemptOutcome::kSucceeded,
                                .artifacts = {},
                                .summary_json = "{}",
                                .failure = {},
                                .usage = {},
                                .report_digest = "r"});
    return !submit(3, principal).reused.empty();
  };
  EXPECT_TRUE(taken(ResultSharing::kTenant, 1));
  EXPECT_TRUE(taken(ResultSharing::kTenant, 2));
  EXPECT_TRUE(taken(ResultSharing::kOwner, 1));
  EXPECT_FALSE(taken(ResultSharing::kOwner, 2));
  EXPECT_FALSE(taken(ResultSharing::kNone, 1));
}

}  // namespace
}  // namespace quasi::server::test
