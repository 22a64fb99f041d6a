// Callers who reach a quota at the same time: it is never exceeded, not by one.

#include <atomic>
#include <thread>
#include <vector>

#include "tests/service/support/people/access_fixture.hpp"
#include "tests/service/support/people/person.hpp"

namespace quasi::server {
namespace {

class QuotaRaces : public Access {
 protected:
  static constexpr int kCallers = 64;

  /// Restarts the server with these quotas of a user.
  void allow(const Allowance& user) {
    server_.reset();
    options_.queue.quotas.user = user;
    start();
    token_ = token_of("ada", v1::ROLE_USER);
  }
  /// Lets 64 callers with the token of one user do this at the same moment. @return how many
  /// succeeded
  template <class Act>
  int at_once(Act act) {
    std::atomic<int> waiting{kCallers}, succeeded{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < kCallers; ++i)
      threads.emplace_back([&, i] {
        const Person person(wire::open_channel(tcp()), token_);
        --waiting;
        while (waiting > 0) std::this_thread::yield();
        if (act(person, i)) ++succeeded;
      });
    for (std::thread& thread : threads) thread.join();
    return succeeded;
  }

  std::string token_;
};

TEST_F(QuotaRaces, OfJobsIsReachedAndNotExceeded) {
  allow({.unfinished_jobs = 150});
  const int accepted = at_once([](const Person& person, int) {
    int mine = 0;
    for (int call = 0; call < 5; ++call) {
      const grpc::Status status = person.try_submit();
      if (status.ok()) ++mine;
      EXPECT_TRUE(status.ok() || wire::reason_of(status) == "QUOTA_QUEUED")
          << status.error_message();
    }
    return mine > 0;
  });
  EXPECT_GT(accepted, 0);
  const Person ada(wire::open_channel(tcp()), token_);
  v1::ListJobsRequest request;
  request.set_page_size(1'000);
  v1::ListJobsResponse response;
  ASSERT_TRUE(ada.call(ada.jobs(), &v1::JobService::Stub::ListJobs, request, &response).ok());
  EXPECT_EQ(response.jobs_size(), 150);
}

TEST_F(QuotaRaces, OfBytesIsNotExceeded) {
  constexpr int kBytes = 10'000, kFiles = 20;
  allow({.stored_bytes = kFiles * kBytes});
  const int accepted = at_once([](const Person& person, int i) {
    const grpc::Status status =
        person.try_send(std::string(kBytes - 8, 'b') + std::to_string(10'000'000 + i));
    EXPECT_TRUE(status.ok() || wire::reason_of(status) == "QUOTA_BYTES") << status.error_message();
    return status.ok();
  });
  EXPECT_EQ(accepted, kFiles);
}

}  // namespace
}  // namespace quasi::server
