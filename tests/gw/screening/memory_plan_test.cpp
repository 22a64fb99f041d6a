// The planned memory of a job against the peak of a process that runs it. Nightly.

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

// Two cut-offs tell the matrices from the rest of the process. The peak is in Σ, where the pole
// model of the CPU is a second copy: A, ω̃ and four planes of doubles, 56 n² bytes. The plan of the
// host must hold within 20 %.
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
