// Tests jobs that wait for others: when they start, fail and take files, and who may name whom.

#include "server/store/sqlite.hpp"
#include "tests/service/server/dependencies/dependencies_fixture.hpp"

namespace quasi::server::test {
namespace {

using Act = ChangeTurns::Act;

class Dependencies : public DependenciesTest {};

TEST_F(Dependencies, AJobWaitsForTheSuccessOfAnother) {
  const auto uids = submit_all({simple_job("first"), after({place(0)})});
  EXPECT_EQ(state(uids[1]), JobState::kBlocked);
  const Grant first = start().value();
  EXPECT_EQ(first.job.uid, uids[0]);
  EXPECT_FALSE(start()) << "a job was granted before the one that it waits for ended";
  const Explanation waits = why(uids[1]);
  EXPECT_EQ(waits.reason, WaitReason::kDependency);
  EXPECT_EQ(waits.blocking, std::vector<std::string>{uids[0]});
  EXPECT_EQ(waits.blocking_jobs, 1);
  end(first, "result");
  EXPECT_EQ(state(uids[1]), JobState::kQueued);
  EXPECT_EQ(start().value().job.uid, uids[1]);
  EXPECT_EQ(text("SELECT e.message FROM events e JOIN jobs j ON j.id=e.job_id WHERE j.uid=? "
                 "AND e.message<>'' ORDER BY e.seq",
                 uids[1]),
            "it waits for 1 other job the jobs for which it waited have ended ");
}

TEST_F(Dependencies, AJobWaitsForAllOfThem) {
  const std::string first = add(simple_job("first")), second = add(simple_job("second"));
  const std::string last = add(after({uid(first), uid(second)}));
  finish("result");
  EXPECT_EQ(state(last), JobState::kBlocked);
  EXPECT_EQ(why(last).blocking, std::vector<std::string>{second});
  finish("result");
  EXPECT_EQ(state(last), JobState::kQueued);
}

TEST_F(Dependencies, AFailureFailsThoseThatWaitForTheSuccess) {
  const std::string first = add(simple_job("first"));
  const std::string second = add(after({uid(first)}));
  const std::string third = add(after({uid(second)}));
  const std::string anyway = add(after({uid(first)}, Condition::kFinished));
  finish("", AttemptOutcome::kFailed);
  EXPECT_EQ(state(second), JobState::kFailed);
  EXPECT_EQ(row(second).failure.reason, FailureReason::kDependency);
  EXPECT_EQ(row(second).failure.message, "job " + first + ", for whose success it waited, failed");
  EXPECT_EQ(row(third).failure.message, "job " + second + ", for whose success it waited, failed");
  EXPECT_EQ(state(anyway), JobState::kQueued) << "FINISHED includes a failure";
}

TEST_F(Dependencies, ACancelDoesTheSame) {
  const std::string first = add(simple_job("first"));
  const std::string second = add(after({uid(first)}));
  const std::string anyway = add(after({uid(first)}, Condition::kFinished));
  cancel({first});
  EXPECT_EQ(row(second).failure.message,
            "job " + first + ", for whose success it waited, was cancelled");
  EXPECT_EQ(state(anyway), JobState::kQueued);
}

TEST_F(Dependencies, ARetryIsNoEnd) {
  const std::string first = add(simple_job("first"));
  const std::string second = add(after({uid(first)}, Condition::kFinished));
  world_.apply(CompleteAttempt{.key = key_of(start().value()),
                               .outcome = AttemptOutcome::kFailed,
                               .artifacts = {},
                               .summary_json = {},
                               .failure = {.reason = FailureReason::kStorage, .message = "full"},
                               .usage = {},
                               .report_digest = "r"});
  EXPECT_EQ(state(first), JobState::kQueued);
  EXPECT_EQ(state(second), JobState::kBlocked);
}

// Cancelling a chain cancels each of its jobs, in whatever order they are named.
TEST_F(Dependencies, OneCallCancelsAChain) {
  const auto uids = submit_all({simple_job("first"), after({place(0)}), after({place(1)})});
  cancel({uids[0], uids[1], uids[2], uids[0]});
  for (const std::string& uid : uids) EXPECT_EQ(state(uid), JobState::kCancelled);
}

// The end of the first of 10,000 jobs ends all of them in one transaction and without recursion.
TEST_F(Dependencies, AChainOf10000EndsAtOnce) {
  constexpr std::size_t kCalls = 10, kJobs = 1'000;
  std::vector<std::string> all;
  for (std::size_t call = 0; call < kCalls; ++call) {
    std::vector<NewJob> jobs;
    for (std::size_t i = 0; i < kJobs; ++i)
      jobs.push_back(
          i > 0 ? after({place(i - 1)})
                : after(all.empty() ? std::vector<JobReference>{} : std::vector{uid(all.back())}));
    for (const std::string& uid : submit_all(jobs)) all.push_back(uid);
  }
  EXPECT_EQ(state(all.back()), JobState::kBlocked);
  cancel({all.front()});
  EXPECT_EQ(text("SELECT count(*) FROM jobs WHERE state=8 AND reason=10 AND kind=?", "test"),
            std::to_string(kCalls * kJobs - 1) + " ");
  EXPECT_EQ(text("SELECT count(*) FROM events WHERE to_state=8 AND ?<>''", "x"),
            std::to_string(kCalls * kJobs - 1) + " ");
}

TEST_F(Dependencies, AHeldJobStaysHeldUntilItIsReleased) {
  const std::string first = add(simple_job("first"));
  const std::string second = add(after({uid(first)})), third = add(after({uid(first)}));
  EXPECT_EQ(change(second, Act::kHold), JobState::kHeld);
  EXPECT_EQ(change(second, Act::kRelease), JobState::kBlocked);
  EXPECT_EQ(change(second, Act::kRelease), JobState::kBlocked) << "it stays as it is";
  EXPECT_EQ(change(second, Act::kHold), JobState::kHeld);
  finish("result");
  EXPECT_EQ(state(second), JobState::kHeld);
  EXPECT_EQ(state(third), JobState::kQueued);
  EXPECT_EQ(change(second, Act::kRelease), JobState::kQueued);
}

TEST_F(Dependencies, AHeldJobFailsToo) {
  const std::string first = add(simple_job("first"));
  const std::string second = add(after({uid(first)}));
  change(second, Act::kHold);
  cancel({first});
  EXPECT_EQ(state(second), JobState::kFailed);
}

TEST_F(Dependencies, AJobTakesTheFileOfAnother) {
  const std::string first = add(simple_job("first"));
  const std::string second = add(taking(uid(first)));
  EXPECT_EQ(state(second), JobState::kBlocked);
  finish("epsilon");
  erase(first);  // The file stays, because another job needs it.
  const Grant grant = start().value();
  EXPECT_EQ(grant.job.uid, second);
  ASSERT_EQ(grant.made_inputs.size(), 1U);
  EXPECT_EQ(grant.made_inputs[0].slot, "deck/eps.h5");
  EXPECT_EQ(grant.made_inputs[0].digest, wire::sha256_hex("epsilon"));
  EXPECT_EQ(grant.made_inputs[0].size_bytes, 7);
  world_.run([&](WriteContext& write) {
    EXPECT_TRUE(write.store.unreferenced_blobs(write.now.wall_ms + 1, 10).empty());
  });
}

TEST_F(Dependencies, AFileThatWasNotMadeFailsTheJob) {
  const std::string first = add(simple_job("first"));
  const std::string second = add(taking(uid(first), "epsmat.h5"));
  finish("epsilon");
  EXPECT_EQ(row(second).failure.reason, FailureReason::kDependency);
  EXPECT_EQ(row(second).failure.message, "job " + first +
                                             " made no whole artefact 'epsmat.h5', which is the "
                                             "input 'deck/eps.h5'");
  EXPECT_EQ(refusal({taking(uid(first), "epsmat.h5")}),
            "DEPENDENCY_FAILED: inputs[0].from: job " + first +
                " has no whole artefact 'epsmat.h5', so that the new job could never start; name "
                "another job");
}

TEST_F(Dependencies, AFileThatExistsIsTakenAtOnce) {
  const std::string first = add(simple_job("first"));
  finish("epsilon");
  const std::string second = add(taking(uid(first)));
  EXPECT_EQ(state(second), JobState::kQueued);
  EXPECT_EQ(start().value().made_inputs.at(0).digest, wire::sha256_hex("epsilon"));
}

// Two chains of equal jobs: the second job of the later chain takes the result of the earlier one
// as soon as its input is known, and its own dependents go on.
TEST_F(Dependencies, TheResultCacheAnswersOnceTheInputsAreKnown) {
  const std::string first = add(simple_job("first"));
  const std::string second = add(taking(uid(first)));
  finish("epsilon");
  finish("sigma");
  const std::string later = add(simple_job("later"));
  const std::string taker = add(taking(uid(later)));
  const std::string last = add(after({uid(taker)}));
  EXPECT_EQ(row(taker).action, "");
  finish("epsilon");
  EXPECT_EQ(state(taker), JobState::kSucceeded);
  EXPECT_EQ(row(taker).taken_from, row(second).id);
  EXPECT_EQ(digest_of(taker), digest("sigma"));
  EXPECT_EQ(state(last), JobState::kQueued);
  EXPECT_EQ(state(add(taking(uid(later)))), JobState::kSucceeded) << "not at its submission";
}

TEST_F(Dependencies, OtherInputsMakeAnotherAction) {
  const std::string first = add(simple_job("first"));
  add(taking(uid(first)));
  finish("epsilon");
  finish("sigma");
  const std::string later = add(simple_job("later"));
  const std::string other = add(taking(uid(later)));
  finish("another epsilon");
  EXPECT_EQ(state(other), JobState::kQueued);
}

// Of two jobs whose inputs turn out equal, one runs and the other takes its result.
TEST_F(Dependencies, EqualJobsWaitForEachOtherAfterTheirInputs) {
  const std::string first = add(simple_job("first"));
  const std::string second = add(taking(uid(first)));
  finish("epsilon");
  const Grant running = start().value();
  const std::string later = add(simple_job("later"));
  const std::string equal = add(taking(uid(later)));
  finish("epsilon");
  EXPECT_EQ(state(equal), JobState::kBlocked);
  EXPECT_EQ(why(equal).reason, WaitReason::kEqualJob);
  end(running, "sigma");
  EXPECT_EQ(row(equal).taken_from, row(second).id);
}

TEST_F(Dependencies, AJobThatCouldNeverStartIsRefused) {
  const std::string first = add(simple_job("first"));
  cancel({first});
  EXPECT_EQ(refusal({after({uid(first)})}),
            "DEPENDENCY_FAILED: depends_on: job " + first +
                " is CANCELLED, so that the new job could never start; name another job");
  EXPECT_EQ(state(add(after({uid(first)}, Condition::kFinished))), JobState::kQueued);
}

// A job of another tenant answers like one that does not exist. One of the own tenant that is
// visible to it may be named.
TEST_F(Dependencies, ForeignJobsAreAbsent) {
  const std::string first = add(simple_job("first"));
  NewJob shared = simple_job("shared");
  shared.row.visibility = Visibility::kTenant;
  const std::string visible = add(shared);
  finish("result");
  finish("result");
  const std::string absent = "j_" + std::string(26, '0');
  const Scope other = user_scope(2, "devices"), member = user_scope(3, "phonons");
  for (const NewJob& job : {after({uid(first)}), taking(uid(first))}) {
    const std::string foreign = refusal({job}, other);
    EXPECT_NE(foreign.find("there is no job " + first), std::string::npos) << foreign;
  }
  EXPECT_EQ(refusal({after({uid(absent)})}, other), "JOB: depends_on: there is no job " + absent);
  EXPECT_NE(refusal({after({uid(visible)})}, other), "");
  EXPECT_NE(refusal({after({uid(first)})}, member), "") << "a private job of another member";
  EXPECT_EQ(refusal({after({uid(visible)}), taking(uid(visible))}, member), "");
}

TEST_F(Dependencies, ARepeatedSubmissionHasOneEffect) {
  const SubmitJobs command{.scope = user_scope(1, "phonons"),
                           .request_id = uuid_of(++calls_),
                           .body_sha256 = "b",
                           .jobs = {simple_job("first"), after({place(0)})}};
  const Submitted first = world_.apply(command), again = world_.apply(command);
  EXPECT_TRUE(again.replayed);
  EXPECT_EQ(again.uids, first.uids);
  EXPECT_EQ(text("SELECT count(*) FROM job_dependencies WHERE ?<>''", "x"), "1 ");
}

TEST_F(Dependencies, ADeletedJobIsNotNamed) {
  const std::string first = add(simple_job("first"));
  const std::string second = add(after({uid(first)}));
  finish("result");
  finish("result");
  erase(second);
  erase(first);
  EXPECT_EQ(refusal({after({uid(first)})}), "JOB: depends_on: there is no job " + first);
}

// The database itself refuses a dependency on a later job, and a ready job that still waits.
TEST_F(Dependencies, TheDatabaseHasNoCycles) {
  const auto uids = submit_all({simple_job("first"), after({place(0)})});
  Database& database = world_.engine.database();
  const std::string first = std::to_string(row(uids[0]).id),
                    second = std::to_string(row(uids[1]).id);
  EXPECT_THROW(
      database.execute(
          ("INSERT INTO job_dependencies VALUES (" + first + "," + second + ",1)").c_str()),
      SqliteError);
  EXPECT_THROW(
      database.execute(("UPDATE jobs SET state=3, job_seq=job_seq+1 WHERE id=" + second).c_str()),
      SqliteError);
  EXPECT_THROW(database.execute("DELETE FROM job_dependencies"), SqliteError);
}

}  // namespace
}  // namespace quasi::server::test
