// Tests the queue between the thread that receives a blob and the one that writes and hashes it.

#include "proto/wire/transfer/chunk_queue.hpp"

#include <gtest/gtest.h>

#include <future>
#include <stdexcept>

namespace quasi::wire {
namespace {

void append(ChunkQueue& queue, std::string text) { queue.append(text); }

TEST(ChunkQueue, ChunksAreTakenInTheirOrderAndAllOfThem) {
  std::string all;
  ChunkQueue queue([&](const std::string& chunk) { all += chunk; });
  std::string expected;
  for (int i = 0; i < 1'000; ++i) {
    append(queue, std::to_string(i) + ",");
    expected += std::to_string(i) + ",";
  }
  queue.finish();
  EXPECT_EQ(all, expected);
}

// The destructor stands for a download that is stopped. What has arrived is kept for its
// continuation.
TEST(ChunkQueue, WhatHasBeenAppendedIsTakenBeforeItIsDestroyed) {
  std::string all;
  {
    ChunkQueue queue([&](const std::string& chunk) { all += chunk; });
    for (const char* text : {"a", "b", "c"}) append(queue, text);
  }
  EXPECT_EQ(all, "abc");
}

// The caller goes on while a chunk is being taken, until kWaitingChunks wait.
TEST(ChunkQueue, TheCallerGoesOnUntilTheQueueIsFull) {
  std::promise<void> started, release;
  std::shared_future<void> released = release.get_future().share();
  bool first = true;
  int taken = 0;
  ChunkQueue queue([&](const std::string&) {
    if (std::exchange(first, false)) started.set_value();
    released.wait();
    ++taken;
  });
  append(queue, "taken");
  started.get_future().wait();
  for (std::size_t i = 0; i < ChunkQueue::kWaitingChunks; ++i) append(queue, "waits");
  auto one_more = std::async(std::launch::async, [&] { append(queue, "too many"); });
  EXPECT_EQ(one_more.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  release.set_value();
  one_more.get();
  queue.finish();
  EXPECT_EQ(taken, static_cast<int>(ChunkQueue::kWaitingChunks) + 2);
}

TEST(ChunkQueue, AFailureReachesTheCallerAndNothingIsTakenAfterIt) {
  int taken = 0;
  ChunkQueue queue([&](const std::string&) {
    if (++taken == 2) throw std::runtime_error("the disk is full");
  });
  const auto append_until_refused = [&] {
    for (int i = 0; i < 1'000; ++i) append(queue, "bytes");
  };
  EXPECT_THROW(append_until_refused(), std::runtime_error);
  EXPECT_THROW(queue.finish(), std::runtime_error);
  EXPECT_EQ(taken, 2);
}

}  // namespace
}  // namespace quasi::wire
