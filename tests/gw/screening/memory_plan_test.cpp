// Tests that the host memory that a job plans is what its process uses at its peak. The test runs
// nightly.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "workers/gw/solver/calculation/gw_calculation.hpp"

namespace quasi::gw {
namespace {

Deck deck_of(double epsilon_cutoff_ry) {
  return parse_deck(
      "[meanfield]\nsource = \"epm\"\ncell = \"cubic\"\nsupercell = [2, 2, 2]\ncutoff_ry = 6.0\n"
      "bands = 150\nsolver = \"operator\"\n[epsilon]\nwrite = false\ncutoff_ry = " +
          std::to_string(epsilon_cutoff_ry) + "\n[sigma]\nband_min = 128\nband_max = 129\n",
      {}, "test", ".");
}

/// Runs a job in a process of its own. @return its peak resident memory, bytes
double peak_bytes(double epsilon_cutoff_ry) {
  const pid_t child = fork();
  if (child == 0) {
    SilentProgress silent;
    const auto kernels = make_gw_kernels(find_device("cpu"));
    run_calculation(deck_of(epsilon_cutoff_ry), *kernels, std::int64_t{1} << 30, silent);
    _exit(0);
  }
  int status = 0;
  rusage used{};
  EXPECT_EQ(wait4(child, &status, 0, &used), child);
  EXPECT_EQ(status, 0);
  return 1024.0 * static_cast<double>(used.ru_maxrss);
}

// The difference between two cut-offs is the memory of the matrices, without the rest of the
// process. The peak is in Σ. On a CPU the pole model is there twice, which the plan of the host
// does not count: A, ω̃ and four planes of doubles take 56 n² bytes. The plan must hold within
// 20 %.
TEST(MemoryPlan, HoldsTheMatricesOfTheHost) {
  constexpr double kSmall_ry = 1.0, kLarge_ry = 6.0;
  const double used = peak_bytes(kLarge_ry) - peak_bytes(kSmall_ry);
  SilentProgress silent;
  const auto kernels = make_gw_kernels(find_device("cpu"));
  DeviceTeam team(*kernels);
  const auto plan_of = [&](double cutoff_ry) {
    return validated_plan(deck_of(cutoff_ry),
                          {.team = team, .memory_budget_bytes = std::int64_t{1} << 30}, silent);
  };
  const Plan large = plan_of(kLarge_ry);
  const double matrix = static_cast<double>(large.screening_bytes) / 16.0,
               planned = static_cast<double>(large.host_bytes - plan_of(kSmall_ry).host_bytes);
  const double of_host = used - 56.0 * matrix;
  std::printf("%.0f MiB used, %.0f planned\n", of_host / 1048576.0, planned / 1048576.0);
  EXPECT_NEAR(of_host / planned, 1.0, 0.2);
}

}  // namespace
}  // namespace quasi::gw
