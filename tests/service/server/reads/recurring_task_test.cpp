// Tests that a task that recurs does not pile up in a writer that is slower than it.

#include <gtest/gtest.h>

#include <future>

#include "server/service/recurring_task.hpp"
#include "tests/service/support/queue_world.hpp"
#include "tests/support/temporary_directory.hpp"

namespace quasi::server::test {
namespace {

// A tick of a server with 10^6 queued jobs once took seconds, the timer posted ten a second, and a
// submission waited six minutes behind them.
TEST(RecurringTask, WaitsAtMostOnce) {
  const quasi::test::TemporaryDirectory root;
  FakeClock clock;
  SeededRandom random(1);
  QueueWorld world({.files = system_files(), .root = root.path()}, clock, random, QueueOptions{});
  Writer writer(world.engine, {.on_commit = [](const GroupOutcome&) {},
                               .on_fatal = [](const StorageFatal&) { std::abort(); }});
  RecurringTask tick(writer);
  int runs = 0;
  const auto post = [&] { return tick.post({.body = [&](WriteContext&) { ++runs; }, .done = {}}); };
  std::promise<void> release, begun;
  writer.post({.body =
                   [&](WriteContext&) {
                     begun.set_value();
                     release.get_future().wait();
                   },
               .done = {}});
  begun.get_future().wait();
  EXPECT_TRUE(post());
  for (int i = 0; i < 1'000; ++i) EXPECT_FALSE(post());
  EXPECT_EQ(writer.depth(), 1U) << "a caller waits behind one tick";
  release.set_value();
  // The next one is taken as soon as the former has ended.
  while (!post()) std::this_thread::yield();
  writer.close();
  EXPECT_EQ(runs, 2);
  EXPECT_FALSE(post()) << "the writer is closed";
}

}  // namespace
}  // namespace quasi::server::test
