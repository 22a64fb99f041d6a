// Tests the limits on failed logins of a peer and on calls of a principal.

#include <chrono>
#include <filesystem>
#include <fstream>

#include "server/access/call_rates.hpp"
#include "server/access/failed_logins.hpp"
#include "server/queue/refused.hpp"
#include "tests/service/support/people/access_fixture.hpp"

namespace quasi::server {
namespace {

using grpc::StatusCode;

TEST(FailedLogins, HaveTheirTriesAtOnceAndThenOneInEachInterval) {
  FailedLogins logins(5);
  std::int64_t now_ms = 7'000;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(logins.add("192.0.2.7", now_ms), 0) << i;
  EXPECT_EQ(logins.add("192.0.2.7", now_ms), 12'000);
  EXPECT_EQ(logins.wait_ms("192.0.2.7", now_ms), 12'000);
  EXPECT_EQ(logins.add("192.0.2.8", now_ms), 0) << "another peer waits for no one";
  now_ms += 11'999;
  EXPECT_EQ(logins.add("192.0.2.7", now_ms), 1) << "a refused try moves no limit";
  now_ms += 1;
  EXPECT_EQ(logins.add("192.0.2.7", now_ms), 0);
  EXPECT_EQ(logins.add("192.0.2.7", now_ms), 12'000);
  now_ms += 60'000;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(logins.add("192.0.2.7", now_ms), 0) << i;
  EXPECT_EQ(logins.add("192.0.2.7", now_ms), 12'000) << "tries are not saved up";
}

// 4,096 peers are known. Until one of them has all its tries again, a further peer has none (I20).
TEST(FailedLogins, AreCountedInBoundedMemory) {
  FailedLogins logins(5);
  for (int i = 0; i < 4'096; ++i) ASSERT_EQ(logins.add("peer " + std::to_string(i), 0), 0);
  EXPECT_EQ(logins.add("one more", 0), 12'000);
  EXPECT_EQ(logins.add("peer 0", 0), 0) << "a known peer keeps its tries";
  EXPECT_EQ(logins.add("one more", 12'000), 0) << "the others have theirs again";
}

TEST(FailedLogins, PeersAreMachinesWithoutTheirPorts) {
  EXPECT_EQ(host_of_peer("ipv4:192.0.2.7:40312"), "192.0.2.7");
  EXPECT_EQ(host_of_peer("ipv4:192.0.2.7:40313"), "192.0.2.7");
  EXPECT_EQ(host_of_peer("ipv6:%5B2001:db8:1:2:3:4:5:6%5D:40312"), "2001:db8:1:2::");
  EXPECT_EQ(host_of_peer("ipv6:[2001:db8:1:2:ffff::1]:40313"), "2001:db8:1:2::");
  EXPECT_EQ(host_of_peer("unix:/run/quasi.sock"), "unix");
  EXPECT_EQ(host_of_peer("unix:"), "unix");
}

/// Runs a server with the limit of its default.
class LoginLimits : public Access {
 protected:
  LoginLimits() {
    server_.reset();
    options_.api.failed_logins_per_minute = ApiOptions().failed_logins_per_minute;
    start();
  }
  /// Calls with a wrong token until the server lets the peer wait. @return the last status.
  /// A slow machine regains a try every 12 s, so the number of calls has no upper limit here.
  grpc::Status fail_until_limited() {
    grpc::Status status;
    for (int i = 0;; ++i) {
      status = capabilities("qsi_AAAAAAAAAAAA_" + std::string(43, 'A'));
      if (status.error_code() != StatusCode::UNAUTHENTICATED) {
        EXPECT_GE(i, 5) << "the limit is five a minute";
        return status;
      }
      if (i > 1'000) return status;
    }
  }
};

TEST_F(LoginLimits, APeerThatFailsTooOftenWaits) {
  const std::string token = token_of("ada", v1::ROLE_USER);
  const grpc::Status limited = fail_until_limited();
  EXPECT_EQ(limited.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(wire::reason_of(limited), "RATE_LIMITED");
  const auto wait = wire::parse_details(limited).retry_after;
  ASSERT_TRUE(wait);
  EXPECT_GT(wait->count(), 0);
  EXPECT_LE(wait->count(), 12'000);
  EXPECT_NE(limited.error_message().find("token is not valid"), std::string::npos)
      << "the message also names the fault of the token: " << limited.error_message();
  EXPECT_TRUE(capabilities(token).ok()) << "a valid token does not wait for its neighbours";
}

// The secret of a code has a place in the database, so a peer that waits does not reach the writer.
TEST_F(LoginLimits, ACodeWaitsForItsPeer) {
  fail_until_limited();
  const auto stub = v1::AccessService::NewStub(wire::open_channel(tcp()));
  v1::RedeemCodeRequest request;
  request.set_secret(std::string(32, 'A'));
  const auto redeem = [&] {
    grpc::ClientContext context;
    limit(context);
    v1::RedeemCodeResponse response;
    return stub->RedeemCode(&context, request, &response);
  };
  // Wrong codes take the tries that a slow machine regains.
  grpc::Status status = redeem();
  for (int i = 0; i < 1'000 && wire::reason_of(status) == "CODE_INVALID"; ++i) status = redeem();
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_EQ(wire::reason_of(status), "RATE_LIMITED");
}

/// Returns the wait that a charge names, or 0 if the call may go on.
std::int64_t charged_wait_ms(CallRates& rates, const Caller& caller, const char* method,
                             std::int64_t now_ms) {
  try {
    rates.charge(caller, method, now_ms);
  } catch (const Refused& refused) {
    EXPECT_EQ(refused.reason, "RATE_LIMITED");
    EXPECT_NE(std::string(refused.what()).find(caller.name), std::string::npos);
    return refused.retry_after_ms.value_or(-1);
  }
  return 0;
}

TEST(CallRates, SubmissionsAndOtherCallsOfAPrincipalHaveBucketsOfTheirOwn) {
  CallRates rates(20, 100);
  const Caller ada{.principal_id = 1, .name = "ada", .role = Role::kUser, .tenant = "a"};
  const Caller bob{.principal_id = 2, .name = "bob", .role = Role::kUser, .tenant = "a"};
  for (int i = 0; i < 200; ++i) ASSERT_EQ(charged_wait_ms(rates, ada, "SubmitJobs", 5'000), 0);
  EXPECT_EQ(charged_wait_ms(rates, ada, "SubmitJobs", 5'000), 50);
  EXPECT_EQ(charged_wait_ms(rates, bob, "SubmitJobs", 5'000), 0);
  for (int i = 0; i < 1'000; ++i) ASSERT_EQ(charged_wait_ms(rates, ada, "GetJob", 5'000), 0);
  EXPECT_EQ(charged_wait_ms(rates, ada, "ListJobs", 5'000), 10);
  EXPECT_EQ(charged_wait_ms(rates, ada, "ListJobs", 5'010), 0);
  EXPECT_EQ(charged_wait_ms(rates, ada, "SubmitJobs", 5'050), 0);
  EXPECT_EQ(charged_wait_ms(rates, ada, "SubmitJobs", 5'050), 50);
  const Caller worker{.principal_id = 3, .name = "gpu", .role = Role::kWorker, .tenant = "a"};
  for (int i = 0; i < 5'000; ++i) ASSERT_EQ(charged_wait_ms(rates, worker, "Heartbeat", 0), 0);
}

/// Runs a server that lets a principal make three calls a second.
class SlowRates : public Access {
 protected:
  SlowRates() {
    server_.reset();
    options_.api.calls_per_second = 3;
    start();
  }
};

// Thirty calls may come at once. The client library waits for the others as the server tells it.
TEST_F(SlowRates, AClientWaitsForItsTurnAndLosesNoCall) {
  const std::string token = token_of("ada", v1::ROLE_USER);
  const std::string file = root_ + "/token";
  std::ofstream(file) << token;
  std::filesystem::permissions(file, std::filesystem::perms::owner_read);
  const auto stub = v1::JobService::NewStub(wire::open_channel(tcp(), file));
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 36; ++i) {
    grpc::ClientContext context;
    limit(context);
    v1::ListJobsResponse response;
    const grpc::Status status = stub->ListJobs(&context, {}, &response);
    EXPECT_TRUE(status.ok()) << i << ": " << status.error_message();
  }
  EXPECT_GT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(1'500))
      << "the last six calls need two seconds of tokens";
}

}  // namespace
}  // namespace quasi::server
