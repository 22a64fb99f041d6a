// Tests how many threads BLAS uses.

#include "workers/backend/team/blas_threads.hpp"

#include <cblas.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <memory>

#include "workers/io/common_keys.hpp"

namespace quasi::test {
namespace {

constexpr double kLarge_flop = 1e12, kSmall_flop = 1e6;

/// Sets three threads of OpenMP, and what a task sets before its work.
class BlasThreads : public ::testing::Test {
 protected:
  void SetUp() override {
    if (openblas_get_parallel() == OPENBLAS_SEQUENTIAL) GTEST_SKIP() << "BLAS has no threads";
    openblas_set_num_threads(2);
    CommonKeys keys;
    keys.threads = 3;
    use_threads(keys);
  }
};

TEST_F(BlasThreads, ATaskStartsWithOne) { EXPECT_EQ(openblas_get_num_threads(), 1); }

TEST_F(BlasThreads, LargeWorkHasThoseOfOpenMp) {
  {
    const ThreadedBlas threads(kLarge_flop);
    EXPECT_EQ(openblas_get_num_threads(), 3);
  }
  EXPECT_EQ(openblas_get_num_threads(), 1);
}

TEST_F(BlasThreads, SmallWorkKeepsOne) {
  const ThreadedBlas threads(kSmall_flop);
  EXPECT_EQ(openblas_get_num_threads(), 1);
}

TEST_F(BlasThreads, WorkInAParallelRegionKeepsOne) {
  int most = 0;
#pragma omp parallel num_threads(2) reduction(max : most)
  {
    const ThreadedBlas threads(kLarge_flop);
    most = openblas_get_num_threads();
  }
  EXPECT_EQ(most, 1);
}

// Threads that drive several devices hold objects at once, and the first object may end first.
TEST_F(BlasThreads, TheLastOfSeveralSetsThemBack) {
  auto first = std::make_unique<ThreadedBlas>(kLarge_flop);
  auto second = std::make_unique<ThreadedBlas>(kLarge_flop);
  first.reset();
  EXPECT_EQ(openblas_get_num_threads(), 3);
  second.reset();
  EXPECT_EQ(openblas_get_num_threads(), 1);
}

}  // namespace
}  // namespace quasi::test
