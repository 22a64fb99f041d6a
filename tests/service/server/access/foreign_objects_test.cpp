// Tests that a call about a job or a file of somebody else does the work of a call about one that
// does not exist (I15): the same statements on the database, and the same time. Key ids of tokens
// are compared in the same way.

#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <mutex>

#include "tests/service/support/people/access_fixture.hpp"
#include "tests/service/support/people/person.hpp"

namespace quasi::server {
namespace {

/// Records the texts of all statements that begin on a connection of this process.
class StatementTrace {
 public:
  static StatementTrace& instance() {
    static StatementTrace trace;
    return trace;
  }
  /// Returns the statements since the last call.
  std::vector<std::string> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(texts_, {});
  }
  /// Traces the connections that are opened from now on, or no further ones.
  static void begin() { sqlite3_auto_extension(reinterpret_cast<void (*)()>(on_open)); }
  static void end() { sqlite3_cancel_auto_extension(reinterpret_cast<void (*)()>(on_open)); }

 private:
  static int on_open(sqlite3* database, char**, const void*) {
    return sqlite3_trace_v2(database, SQLITE_TRACE_STMT, on_statement, nullptr);
  }
  static int on_statement(unsigned, void*, void*, void* text) {
    StatementTrace& trace = instance();
    const std::lock_guard lock(trace.mutex_);
    trace.texts_.emplace_back(static_cast<const char*>(text));
    return 0;
  }
  std::mutex mutex_;
  std::vector<std::string> texts_;
};

/// Holds a job and a file of ada, and a caller eve who may see neither.
class ForeignObjects : public Access {
 protected:
  ForeignObjects() {
    server_.reset();
    options_.tick_ms = 3'600'000;  // statements come from calls alone
    StatementTrace::begin();
    start();
    const auto channel = wire::open_channel(tcp());
    ada_ = std::make_unique<Person>(channel, token_of("ada", v1::ROLE_USER));
    eve_ = std::make_unique<Person>(channel, token_of("eve", v1::ROLE_USER));
    foreign_job_ = ada_->submit();
    foreign_blob_ = ada_->send("a file of ada");
    absent_job_ = foreign_job_;
    absent_job_.back() = absent_job_.back() == 'A' ? 'B' : 'A';
    absent_blob_ = wire::sha256_hex("a file of nobody");
  }
  // The threads that read open their connections at their first calls.
  ~ForeignObjects() override { StatementTrace::end(); }

  /// Makes a submission of eve with this input.
  grpc::Status submit_with(const std::string& digest) {
    v1::SubmitJobsRequest request;
    v1::JobSpec& spec = *request.add_jobs();
    spec.mutable_test()->mutable_noop();
    v1::Input& input = *spec.add_inputs();
    input.set_slot("deck");
    input.set_digest(digest);
    input.set_size_bytes(13);
    std::string id;
    return eve_->submit(request, &id);
  }
  /// Makes a submission of eve that waits for this job.
  grpc::Status submit_after(const std::string& job) {
    v1::SubmitJobsRequest request;
    v1::JobSpec& spec = *request.add_jobs();
    spec.mutable_test()->mutable_noop();
    spec.add_depends_on()->set_job_id(job);
    std::string id;
    return eve_->submit(request, &id);
  }
  /// Holds a call of eve that names a job, or a file.
  struct NamedCall {
    std::string name;
    std::function<grpc::Status(const std::string&)> call;
    bool of_blob = false;
  };
  std::vector<NamedCall> calls() {
    return {
        {"GetJob",
         [this](const std::string& id) {
           v1::GetJobResponse response;
           return eve_->get(id, &response);
         }},
        {"ListArtifacts",
         [this](const std::string& id) {
           v1::ListArtifactsResponse response;
           return eve_->artifacts(id, &response);
         }},
        {"CancelJobs", [this](const std::string& id) { return eve_->cancel(id); }},
        {"DeleteJobs", [this](const std::string& id) { return eve_->erase(id); }},
        {"ReadLogs", [this](const std::string& id) { return eve_->log(id); }},
        {"ReadBlob", [this](const std::string& digest) { return eve_->read(digest); }, true},
        {"FindMissingBlobs",
         [this](const std::string& digest) {
           EXPECT_FALSE(eve_->has(digest));
           return grpc::Status::OK;
         },
         true},
        {"SubmitJobs", [this](const std::string& digest) { return submit_with(digest); }, true},
        {"SubmitJobs after", [this](const std::string& id) { return submit_after(id); }},
    };
  }
  /// Returns the statements of a call. It is made twice: the first one prepares statements.
  std::vector<std::string> statements_of(const NamedCall& call, const std::string& name) {
    call.call(name);
    StatementTrace::instance().take();
    const grpc::Status status = call.call(name);
    EXPECT_NE(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
    return StatementTrace::instance().take();
  }

  /// Holds tokens with a wrong secret: one has the key id of a principal, the other an unknown one.
  struct WrongTokens {
    std::string known, unknown;
  };
  WrongTokens wrong_tokens() {
    WrongTokens wrong;
    wrong.known = token_of("kim", v1::ROLE_USER);
    wrong.known.back() = wrong.known.back() == 'A' ? 'B' : 'A';
    wrong.known[20] = wrong.known[20] == 'A' ? 'B' : 'A';
    wrong.unknown = wrong.known;
    wrong.unknown.replace(4, 12, "AAAAAAAAAAAA");
    return wrong;
  }
  /// Returns the statements of a failed login. The writer may record it after its answer, so a
  /// submission of ada follows and is included. The writer may commit both in one transaction, so
  /// the statements that belong to a transaction are left out.
  std::vector<std::string> statements_of_login(const std::string& token) {
    StatementTrace::instance().take();
    EXPECT_EQ(capabilities(token).error_code(), grpc::StatusCode::UNAUTHENTICATED);
    ada_->submit();
    auto texts = StatementTrace::instance().take();
    std::erase_if(texts, [](const std::string& text) {
      return text.starts_with("BEGIN") || text.starts_with("COMMIT") ||
             text == "SELECT seq FROM sqlite_sequence WHERE name='events'" ||
             text == "SELECT value FROM counters WHERE name='fence'";
    });
    return texts;
  }

  std::unique_ptr<Person> ada_, eve_;
  std::string foreign_job_, absent_job_, foreign_blob_, absent_blob_;
};

TEST_F(ForeignObjects, CostTheStatementsOfAbsentOnes) {
  for (const NamedCall& call : calls()) {
    const auto foreign = statements_of(call, call.of_blob ? foreign_blob_ : foreign_job_);
    const auto absent = statements_of(call, call.of_blob ? absent_blob_ : absent_job_);
    EXPECT_FALSE(foreign.empty()) << call.name << ": nothing was traced";
    EXPECT_EQ(foreign, absent) << call.name;
    std::cout << call.name << ": " << foreign.size() << " statements\n";
  }
  // The trace sees a difference: ada's own job has a row and artefacts to read.
  v1::GetJobResponse response;
  StatementTrace::instance().take();
  ASSERT_TRUE(ada_->get(foreign_job_, &response).ok());
  const auto own = StatementTrace::instance().take();
  EXPECT_GT(own.size(), statements_of(calls()[0], foreign_job_).size());
}

// A failed login has its row in the audit, whether its key id exists or not.
TEST_F(ForeignObjects, AWrongSecretCostsTheStatementsOfAnUnknownKeyId) {
  const WrongTokens wrong = wrong_tokens();
  statements_of_login(wrong.known);  // prepares statements
  const auto known = statements_of_login(wrong.known);
  EXPECT_EQ(known, statements_of_login(wrong.unknown));
  EXPECT_TRUE(std::any_of(known.begin(), known.end(), [](const std::string& text) {
    return text.find("INTO audit") != std::string::npos;
  }));
  std::cout << "failed login and submission: " << known.size() << " statements\n";
}

/// Measures two calls that are made in turn, so that the load of the machine hits both.
class Duel {
 public:
  /// @param first, second  one call each
  /// @return the ratio of the median times
  static double ratio(int rounds, const std::function<void()>& first,
                      const std::function<void()>& second) {
    std::vector<double> times[2];
    for (int i = 0; i < rounds; ++i)
      for (const int which : {i % 2, 1 - i % 2}) {
        const auto begin = std::chrono::steady_clock::now();
        (which == 0 ? first : second)();
        const std::chrono::duration<double, std::micro> took =
            std::chrono::steady_clock::now() - begin;
        times[which].push_back(took.count());
      }
    double median[2];
    for (const int which : {0, 1}) {
      std::sort(times[which].begin(), times[which].end());
      median[which] = times[which][times[which].size() / 2];
    }
    std::cout << median[0] << " us and " << median[1] << " us";
    return median[0] / median[1];
  }
};

/// Returns the number of calls of each sort; 0 unless the nightly test asks for the measurement.
int timed_calls() {
  const char* number = std::getenv("QUASI_TIMED_CALLS");
  return number == nullptr ? 0 : std::atoi(number);
}

constexpr double kMostDifference = 0.02;  ///< of the medians, by the specification

TEST_F(ForeignObjects, TakeTheTimeOfAbsentOnes) {
  const int rounds = timed_calls();
  if (rounds == 0) GTEST_SKIP() << "QUASI_TIMED_CALLS names the number of calls";
  for (const NamedCall& call : calls()) {
    if (call.name != "GetJob" && call.name != "ReadBlob") continue;
    const std::string& foreign = call.of_blob ? foreign_blob_ : foreign_job_;
    const std::string& absent = call.of_blob ? absent_blob_ : absent_job_;
    const double ratio = Duel::ratio(
        rounds, [&] { call.call(foreign); }, [&] { call.call(absent); });
    std::cout << ": foreign and absent, " << call.name << ", ratio " << ratio << '\n';
    EXPECT_LE(std::abs(ratio - 1), kMostDifference) << call.name;
  }
}

TEST_F(ForeignObjects, AWrongSecretTakesTheTimeOfAnUnknownKeyId) {
  const int rounds = timed_calls();
  if (rounds == 0) GTEST_SKIP() << "QUASI_TIMED_CALLS names the number of calls";
  server_.reset();
  options_.api.failed_logins_per_minute = ApiOptions().failed_logins_per_minute;
  start();
  const WrongTokens wrong = wrong_tokens();
  const double ratio = Duel::ratio(
      rounds, [&] { capabilities(wrong.known); }, [&] { capabilities(wrong.unknown); });
  std::cout << ": known and unknown key id, ratio " << ratio << '\n';
  EXPECT_LE(std::abs(ratio - 1), kMostDifference);
}

}  // namespace
}  // namespace quasi::server
