// Tests the limit on failed logins of a peer.

#include "server/access/failed_logins.hpp"
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

}  // namespace
}  // namespace quasi::server
