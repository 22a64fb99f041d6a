// Tests that watchers share the pages of events that one of them read, and nothing else.

#include "server/api/streams/event_pages.hpp"
#include "tests/service/support/people/access_fixture.hpp"
#include "tests/service/support/people/person.hpp"

namespace quasi::server {
namespace {

std::shared_ptr<const EventPage> page_of(std::int64_t after, std::int64_t last,
                                         std::size_t bytes = 100) {
  EventPage page{.after = after, .last = last, .entries = {}, .foreign = {}, .bytes = bytes};
  return std::make_shared<const EventPage>(std::move(page));
}

TEST(EventPages, GiveAFeedItsPageForAnyPlaceInIt) {
  EventPages pages;
  const auto page = page_of(10, 20);
  pages.keep("a", page, 0);
  EXPECT_EQ(pages.find("a", 10, 0), page);
  EXPECT_EQ(pages.find("a", 19, 0), page);
  EXPECT_EQ(pages.find("a", 9, 0), nullptr) << "it lacks event 10";
  EXPECT_EQ(pages.find("a", 20, 0), nullptr) << "it has no later event";
  EXPECT_EQ(pages.find("b", 10, 0), nullptr) << "it belongs to others";
  EXPECT_EQ(pages.find("a", 10, EventPages::kLifeMs - 1), page);
  EXPECT_EQ(pages.find("a", 10, EventPages::kLifeMs), nullptr) << "deleted events would stay";
  EXPECT_EQ(pages.bytes(), 0u);
}

// I20
TEST(EventPages, AreBounded) {
  EventPages pages;
  for (std::int64_t i = 0; i < 100; ++i) pages.keep("a", page_of(i, i + 1, 1 << 20), 0);
  EXPECT_EQ(pages.bytes(), EventPages::kMostBytes);
  EXPECT_NE(pages.find("a", 99, 0), nullptr);
  EXPECT_EQ(pages.find("a", 0, 0), nullptr);
  const auto most = static_cast<std::int64_t>(EventPages::kMostPages);
  for (std::int64_t i = 100; i < 101 + most; ++i) pages.keep("a", page_of(i, i + 1), 0);
  EXPECT_EQ(pages.find("a", 100, 0), nullptr);
  EXPECT_NE(pages.find("a", 101, 0), nullptr);
  pages.keep("a", page_of(0, 1, EventPages::kMostBytes + 1), 0);
  EXPECT_EQ(pages.find("a", 0, 0), nullptr) << "larger than all room";
}

using Ids = std::vector<std::string>;

class SharedEvents : public Access {
 protected:
  static void limit(grpc::ClientContext& context, const Person& person) {
    person.admit(context);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(15));
  }
  Person person(const std::string& token) { return Person(wire::open_channel(tcp()), token); }
  static Ids submit(const Person& person, const std::string& name, int count) {
    grpc::ClientContext context;
    limit(context, person);
    v1::SubmitJobsRequest request;
    request.set_request_id(wire::make_uuid());
    for (int i = 0; i < count; ++i) {
      v1::JobSpec& job = *request.add_jobs();
      job.set_name(name);
      job.mutable_test()->mutable_noop();
    }
    v1::SubmitJobsResponse response;
    EXPECT_TRUE(person.jobs().SubmitJobs(&context, request, &response).ok());
    return {response.job_ids().begin(), response.job_ids().end()};
  }
  /// A token of this moment, for the watchers with this filter.
  static std::string token_of_now(const Person& person, const std::string& prefix = "") {
    grpc::ClientContext context;
    limit(context, person);
    v1::WatchJobsRequest request;
    request.set_snapshot(true);
    request.mutable_filter()->set_name_prefix(prefix);
    const auto reader = person.jobs().WatchJobs(&context, request);
    v1::WatchEvent event;
    while (reader->Read(&event) && !event.has_bookmark()) continue;
    context.TryCancel();
    return event.resume_token();
  }
  /// The jobs of the changes of state after `token`, until that of `last`.
  /// @param token  becomes the one of the event in the middle
  static Ids jobs_until(const Person& person, const std::string& last, std::string& token,
                        const std::string& prefix = "") {
    grpc::ClientContext context;
    limit(context, person);
    v1::WatchJobsRequest request;
    request.set_resume_token(token);
    request.mutable_filter()->set_name_prefix(prefix);
    const auto reader = person.jobs().WatchJobs(&context, request);
    Ids ids, tokens;
    v1::WatchEvent event;
    while ((ids.empty() || ids.back() != last) && reader->Read(&event)) {
      if (!event.has_state_changed()) continue;
      ids.push_back(event.job_id());
      tokens.push_back(event.resume_token());
    }
    context.TryCancel();
    if (!tokens.empty()) token = tokens[(tokens.size() - 1) / 2];
    return ids;
  }
};

// I9: watchers with one filter take the page that one of them read, from wherever they begin.
TEST_F(SharedEvents, FollowersOfAWatcherSeeTheSameEvents) {
  const Person ada = person(token_of("ada", v1::ROLE_USER));
  const std::string begin = token_of_now(ada);
  const std::string begin_of_some = token_of_now(ada, "some");
  Ids all = submit(ada, "all", 100);
  const Ids some = submit(ada, "some", 100);
  all.insert(all.end(), some.begin(), some.end());
  for (int watcher = 0; watcher < 3; ++watcher) {
    std::string token = begin;
    EXPECT_EQ(jobs_until(ada, all.back(), token), all);
    EXPECT_EQ(jobs_until(ada, all.back(), token), some) << "from the middle of a page";
    std::string token_of_some = begin_of_some;
    EXPECT_EQ(jobs_until(ada, all.back(), token_of_some, "some"), some) << "another filter";
  }
}

// I15: pages are shared among equal rights alone. All three watch without a filter.
TEST_F(SharedEvents, PeopleSeeTheirOwnJobsAlone) {
  const Person ada = person(token_of("ada", v1::ROLE_USER));
  const Person bo = person(token_of("bo", v1::ROLE_USER));
  const Person boss = person(token_of("boss", v1::ROLE_OPERATOR));
  std::string of_ada = token_of_now(ada), of_bo = token_of_now(bo), of_boss = token_of_now(boss);
  Ids all = submit(ada, "job", 3);
  const Ids first_of_bo = submit(bo, "job", 3);
  const Ids of_ada_later = submit(ada, "job", 1);
  Ids of_bo_all = first_of_bo;
  of_bo_all.push_back(submit(bo, "job", 1).front());
  Ids of_ada_all = all;
  of_ada_all.push_back(of_ada_later.front());
  all.insert(all.end(), first_of_bo.begin(), first_of_bo.end());
  all.push_back(of_ada_later.front());
  all.push_back(of_bo_all.back());
  EXPECT_EQ(jobs_until(boss, all.back(), of_boss), all);
  EXPECT_EQ(jobs_until(ada, of_ada_all.back(), of_ada), of_ada_all);
  EXPECT_EQ(jobs_until(bo, of_bo_all.back(), of_bo), of_bo_all);
}

}  // namespace
}  // namespace quasi::server
