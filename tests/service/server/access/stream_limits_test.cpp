// Tests the limits of open streams and of the rate of uploads of each principal.

#include "server/access/open_streams.hpp"
#include "server/access/upload_rates.hpp"
#include "server/queue/refused.hpp"
#include "tests/service/support/people/access_fixture.hpp"
#include "tests/service/support/people/person.hpp"

namespace quasi::server {
namespace {

using grpc::StatusCode;

const Caller kAda{.principal_id = 1, .name = "ada", .role = Role::kUser, .tenant = "a"};
const Caller kBo{.principal_id = 2, .name = "bo", .role = Role::kUser, .tenant = "a"};
const Caller kWorker{.principal_id = 3, .name = "gpu", .role = Role::kWorker, .tenant = "a"};

TEST(OpenStreams, AreCountedUntilTheirEnd) {
  StreamPlace late;
  {
    OpenStreams streams(2);
    const StreamPlace first = streams.open(kAda);
    StreamPlace second = streams.open(kAda);
    try {
      streams.open(kAda);
      ADD_FAILURE() << "a third stream was opened";
    } catch (const Refused& refused) {
      EXPECT_EQ(refused.reason, "RATE_LIMITED");
      EXPECT_EQ(std::string(refused.what()),
                "ada has 2 open streams, which is the limit (server key streams_per_principal); "
                "end a watch, a log or a transfer, or wait 1000 ms");
      EXPECT_EQ(refused.retry_after_ms, 1'000);
    }
    EXPECT_NO_THROW(streams.open(kBo)) << "each principal has streams of their own";
    for (int i = 0; i < 5; ++i) EXPECT_EQ(streams.open(kWorker), nullptr);
    second.reset();
    late = streams.open(kAda);
    EXPECT_THROW(streams.open(kAda), Refused);
  }
  late.reset();  // a stream may outlive the server's counter
}

/// Returns the wait with which a new upload is refused, or 0 if it may begin.
std::int64_t refused_wait_ms(const UploadRates& rates, const Caller& caller, std::int64_t now_ms) {
  try {
    rates.require_turn(caller, now_ms);
  } catch (const Refused& refused) {
    EXPECT_EQ(refused.reason, "RATE_LIMITED");
    EXPECT_NE(std::string(refused.what()).find("server key upload_bytes_per_second"),
              std::string::npos);
    return refused.retry_after_ms.value_or(-1);
  }
  return 0;
}

// The clock is a number here. 1,000 bytes a second are 10,000 at once.
TEST(UploadRates, TenSecondsComeAtOnceAndThenTheRate) {
  UploadRates rates(1'000);
  EXPECT_EQ(rates.charge(kAda, 9'000, 5'000), 0);
  EXPECT_EQ(refused_wait_ms(rates, kAda, 5'000), 0);
  EXPECT_EQ(rates.charge(kAda, 3'000, 5'000), 2'001) << "2 s over the burst and the next token";
  EXPECT_EQ(refused_wait_ms(rates, kAda, 5'000), 2'001);
  EXPECT_EQ(refused_wait_ms(rates, kBo, 5'000), 0);
  EXPECT_EQ(refused_wait_ms(rates, kAda, 7'000), 1);
  EXPECT_EQ(refused_wait_ms(rates, kAda, 7'001), 0);
  EXPECT_EQ(rates.charge(kAda, 0, 7'001), 0) << "a paused stream asks without bytes";
  EXPECT_EQ(rates.charge(kWorker, 1'000'000, 5'000), 0);
  UploadRates unlimited(0);
  EXPECT_EQ(unlimited.charge(kAda, 1'000'000'000, 0), 0);
}

class StreamLimits : public Access {
 protected:
  void restart(std::int64_t streams, std::int64_t upload_bytes_per_second) {
    server_.reset();
    options_.api.streams_per_principal = streams;
    options_.api.upload_bytes_per_second = upload_bytes_per_second;
    start();
  }
};

// The place of a stream is free again when its client leaves.
TEST_F(StreamLimits, AFurtherStreamWaitsForTheEndOfAnother) {
  restart(1, 0);
  const Person ada(wire::open_channel(tcp()), token_of("ada", v1::ROLE_USER));
  v1::WatchEvent event;
  grpc::ClientContext first;
  ada.admit(first);
  v1::WatchJobsRequest request;
  request.set_snapshot(true);
  const auto watch = ada.jobs().WatchJobs(&first, request);
  ASSERT_TRUE(watch->Read(&event)) << "the bookmark after the snapshot";
  const auto other_watch = [&] {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kHang);
    ada.admit(context);
    const auto other = ada.jobs().WatchJobs(&context, request);
    if (other->Read(&event)) {
      context.TryCancel();
      other->Finish();
      return grpc::Status::OK;
    }
    return other->Finish();
  };
  const grpc::Status refused = other_watch();
  EXPECT_EQ(refused.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(refused.error_message().find("streams_per_principal"), std::string::npos)
      << refused.error_message();
  EXPECT_EQ(ada.try_send("an upload").error_code(), StatusCode::RESOURCE_EXHAUSTED);
  first.TryCancel();
  watch->Finish();
  EXPECT_TRUE(wait_for([&] { return other_watch().ok(); }));
}

// A principal over the rate is told how long to wait. The first upload ends all the same.
TEST_F(StreamLimits, ANewUploadWaitsForTheRate) {
  restart(128, 1);
  const Person ada(wire::open_channel(tcp()), token_of("ada", v1::ROLE_USER));
  const Person bo(wire::open_channel(tcp()), token_of("bo", v1::ROLE_USER));
  EXPECT_TRUE(ada.try_send(std::string(100, 'a')).ok());
  const grpc::Status refused = ada.try_send("second");
  EXPECT_EQ(refused.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(refused.error_message().find("upload_bytes_per_second"), std::string::npos)
      << refused.error_message();
  const auto wait = wire::parse_details(refused).retry_after;
  ASSERT_TRUE(wait);
  EXPECT_GT(wait->count(), 0);
  EXPECT_LE(wait->count(), 90'001);
  EXPECT_TRUE(bo.try_send("the upload of another").ok());
}

// The messages of one upload are read at the rate: 1,000 bytes at once, then 100 a second.
TEST_F(StreamLimits, AnUploadIsSlowedDownToTheRate) {
  restart(128, 100);
  const Person ada(wire::open_channel(tcp()), token_of("ada", v1::ROLE_USER));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(ada.try_send(std::string(1'070, 'a'), wire::make_uuid(), 1'060).ok());
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(600));
}

}  // namespace
}  // namespace quasi::server
