// The queue that a team of devices takes tiles from and hands their sums over to.

#include <gtest/gtest.h>

#include <vector>

#include "workers/backend/error.hpp"
#include "workers/thermal/solver/tile_queue.hpp"

namespace quasi::thermal {
namespace {

TEST(TileQueue, HandsOverInOrder) {
  TileQueue queue(2, 5, 2);
  std::vector<std::int64_t> order;
  const auto add = [&](std::int64_t place, const std::vector<double>& values) {
    EXPECT_EQ(values, std::vector<double>{static_cast<double>(place)});
    order.push_back(place);
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

// A cancellation is noticed once a piece is in the sum and in the checkpoint: the device that
// finishes next must not add it again, or the resumed job would count its processes twice.
TEST(TileQueue, APieceWhoseTakerIsCancelledIsNotAddedAgain) {
  TileQueue queue(0, 3, 2);
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

}  // namespace
}  // namespace quasi::thermal
