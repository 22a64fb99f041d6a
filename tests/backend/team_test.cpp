// Tests a team of devices: the queue of tasks, ranges of tasks, sums in one order, and failures.

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "workers/backend/error.hpp"
#include "workers/backend/team/every_device.hpp"
#include "workers/backend/team/task_queue.hpp"
#include "workers/backend/team/task_ranges.hpp"
#include "workers/backend/team/tree_sum.hpp"

namespace quasi {
namespace {

TEST(TaskQueue, HandsOverInOrder) {
  TaskQueue queue(2, 5, 2);
  std::vector<std::int64_t> order;
  const auto add = [&](std::int64_t task, const std::vector<double>& values) {
    EXPECT_EQ(values, std::vector<double>{static_cast<double>(task)});
    order.push_back(task);
  };
  queue.finish(4, {4.0});
  queue.finish(3, {3.0});
  queue.hand_over(add);
  EXPECT_TRUE(order.empty());
  queue.finish(2, {2.0});
  queue.hand_over(add);
  EXPECT_EQ(order, (std::vector<std::int64_t>{2, 3, 4}));
  EXPECT_TRUE(queue.all_handed_over());
}

// A cancellation is noticed after a piece is in the sum and in the checkpoint. The device that
// finishes next must not add the piece again, or the resumed job would count its processes twice.
TEST(TaskQueue, APieceWhoseTakerIsCancelledIsNotAddedAgain) {
  TaskQueue queue(0, 3, 2);
  queue.finish(0, {1.0});
  queue.finish(1, {1.0});
  double sum = 0.0;
  const auto add_and_cancel = [&](std::int64_t, const std::vector<double>& values) {
    sum += values[0];
    throw Cancelled("cancelled");
  };
  EXPECT_THROW(queue.hand_over(add_and_cancel), Cancelled);
  EXPECT_EQ(sum, 1.0);
  queue.finish(2, {1.0});
  queue.hand_over(add_and_cancel);
  EXPECT_EQ(sum, 1.0);
  EXPECT_FALSE(queue.all_handed_over());
}

TEST(TaskQueue, WaitsForAnEarlierTaskBeforeItRunsTooFarAhead) {
  TaskQueue queue(0, 100, 1);
  std::int64_t taken = 0;
  while (queue.try_take()) ++taken;
  EXPECT_EQ(taken, 4);
  queue.finish(0, {});
  queue.hand_over([](std::int64_t, const std::vector<double>&) {});
  EXPECT_EQ(queue.try_take(), std::optional<std::int64_t>(4));
}

// The sum of 1/k is not associative in floating point: only a fixed order gives equal bits.
TEST(ShareTasks, GivesTheSameBitsOnAnyNumberOfDevices) {
  std::vector<double> sums;
  for (const std::size_t n_devices : {1u, 2u, 5u}) {
    double sum = 0.0;
    const SilentProgress silent;
    share_tasks(
        {.ranks = one_rank(), .n_own = n_devices, .first = 1, .end = 2000, .progress = silent},
        [](std::size_t, std::int64_t) {},
        [](std::size_t, std::int64_t task) {
          return std::vector<double>{std::sin(static_cast<double>(task)) / (1.0 * task)};
        },
        [&](std::int64_t, const std::vector<double>& values) { sum += values[0]; });
    sums.push_back(sum);
  }
  EXPECT_EQ(sums[0], sums[1]);
  EXPECT_EQ(sums[0], sums[2]);
}

TEST(OnEveryDevice, ThrowsTheFailureOfTheLowestDeviceAndStopsTheOthers) {
  std::atomic<bool> stop{false};
  try {
    on_every_device(4, stop, [&](std::size_t device) {
      if (device % 2 == 1) throw InvalidInput("device " + std::to_string(device));
      while (!stop) std::this_thread::yield();
    });
    FAIL() << "no failure was passed on";
  } catch (const InvalidInput& failure) {
    EXPECT_STREQ(failure.what(), "device 1");
  }
}

TEST(TaskRanges, NeighboursStayOnTheirDevice) {
  TaskRanges ranges({{0, 2}, {2, 5}}, TaskRanges::Order::kNeighbours);
  EXPECT_EQ(ranges.next(0), std::optional<std::int64_t>(0));
  EXPECT_EQ(ranges.next(0), std::optional<std::int64_t>(1));
  EXPECT_EQ(ranges.next(0), std::nullopt);
  EXPECT_EQ(ranges.next(1), std::optional<std::int64_t>(2));
}

TEST(TaskRanges, AnIdleDeviceTakesTheLastTaskOfTheLongestRange) {
  TaskRanges ranges({{0, 0}, {0, 2}, {2, 5}}, TaskRanges::Order::kBalanced);
  EXPECT_EQ(ranges.next(0), std::optional<std::int64_t>(4));
  EXPECT_EQ(ranges.next(2), std::optional<std::int64_t>(2));
  EXPECT_EQ(ranges.next(0), std::optional<std::int64_t>(1));
}

struct Term {
  std::int64_t begin = 0, count = 1;
  double sum = 0.0;
};

/// The sum of `values` computed by `n_parts` devices. Each device sums neighbouring terms, and the
/// nodes of all devices are pushed in order.
double tree_sum(const std::vector<double>& values, std::size_t n_parts) {
  const auto add = [](Term& a, const Term& b) { a.sum += b.sum; };
  std::vector<Term> all;
  for (std::size_t part = 0; part < n_parts; ++part) {
    std::vector<Term> own;
    for (std::size_t i = part * values.size() / n_parts; i < (part + 1) * values.size() / n_parts;
         ++i)
      push_node(own, {static_cast<std::int64_t>(i), 1, values[i]}, add);
    for (const Term& node : own) push_node(all, node, add);
  }
  close_nodes(all, add);
  EXPECT_EQ(all.size(), 1u);
  return all.front().sum;
}

TEST(TreeSum, DoesNotDependOnTheNumberOfParts) {
  std::mt19937 random(7);
  std::vector<double> values(77);
  for (double& value : values) value = std::ldexp(1.0 + 1e-3 * (random() % 1000), random() % 40);
  for (const std::size_t n_parts : {2u, 3u, 7u, 77u})
    EXPECT_EQ(tree_sum(values, n_parts), tree_sum(values, 1)) << n_parts;
}

}  // namespace
}  // namespace quasi
