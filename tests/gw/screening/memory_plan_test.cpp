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

/// 64 atoms, whose ε has 193 plane waves at 1.2 Ry and 1,500 to 2,100 at 4.8 and 6 Ry.
Deck deck_of(const std::string& crystal, const std::string& further, double epsilon_cutoff_ry,
             const std::string& sigma = "band_min = 128\nband_max = 129\n") {
  return parse_deck("[meanfield]\nsource = \"epm\"\ncell = \"cubic\"\ncrystal = \"" + crystal +
                        "\"\nsupercell = [2, 2, 2]\ncutoff_ry = 6.0\nbands = 150\n"
                        "solver = \"operator\"\n[epsilon]\nwrite = false\ncutoff_ry = " +
                        std::to_string(epsilon_cutoff_ry) + "\n[sigma]\n" + sigma + further,
                    {}, "test", ".");
}

/// Runs a job in a process of its own. @return its peak resident memory, bytes
double peak_bytes(const Deck& deck) {
  const pid_t child = fork();
  if (child == 0) {
    SilentProgress silent;
    const auto kernels = make_gw_kernels(find_device("cpu"));
    run_calculation(deck, *kernels, std::int64_t{1} << 30, silent);
    _exit(0);
  }
  int status = 0;
  rusage used{};
  EXPECT_EQ(wait4(child, &status, 0, &used), child);
  EXPECT_EQ(status, 0);
  return 1024.0 * static_cast<double>(used.ru_maxrss);
}

double planned_bytes(const Deck& deck) {
  SilentProgress silent;
  const auto kernels = make_gw_kernels(find_device("cpu"));
  DeviceTeam team(*kernels);
  return static_cast<double>(
      validated_plan(deck, {.team = team, .memory_budget_bytes = std::int64_t{1} << 30}, silent)
          .host_bytes);
}

// The difference between two jobs is the memory of their matrices, without the rest of the process.
// The plan must hold within 20 %.
void check_plan(const Deck& small, const Deck& large) {
  const double used = peak_bytes(large) - peak_bytes(small),
               planned = planned_bytes(large) - planned_bytes(small);
  std::printf("%.0f MiB used, %.0f planned\n", used / 1048576.0, planned / 1048576.0);
  EXPECT_NEAR(used / planned, 1.0, 0.2);
}

void check_plan(const std::string& crystal, const std::string& further, double cutoff_ry) {
  check_plan(deck_of(crystal, further, 1.2), deck_of(crystal, further, cutoff_ry));
}

constexpr const char* kBars =
    "[pseudobands]\nvectors = 4\nblocks = 4\nprotected_ry = 0.1\nmax_identity_error = 0.02\n"
    "ratio = 0.5\n";

TEST(MemoryPlan, HoldsAtTwoCutOffs) {
  check_plan("silicon", "", 4.8);
  check_plan("silicon", "", 6.0);
}
TEST(MemoryPlan, HoldsWithComplexStates) { check_plan("gaas", "", 4.8); }
// If a deck asks for eight slices, the host of a CPU has one slice of χ and one of the poles in
// place of whole matrices.
TEST(MemoryPlan, HoldsInSlices) {
  for (const char* further : {"", kBars}) {
    Deck small = deck_of("silicon", further, 1.2), large = deck_of("silicon", further, 6.0);
    small.epsilon.column_slices = large.epsilon.column_slices = 8;
    check_plan(small, large);
  }
}
// Products of 70 outer states with all bands exceed the copy of ε⁻¹ from which poles are made.
TEST(MemoryPlan, HoldsWithFirstOrders) {
  const std::string few = "method = \"cohsex\"\nband_min = 128\nband_max = 129\n",
                    many = "method = \"cohsex\"\nband_min = 75\nband_max = 144\n",
                    displaced = "[perturbation]\natoms = [1]\n";
  check_plan(deck_of("silicon", displaced, 1.2, few), deck_of("silicon", displaced, 4.8, many));
}
TEST(MemoryPlan, HoldsWithErrorBars) { check_plan("silicon", kBars, 4.8); }

/// 64 atoms whose 751 or 2,109 plane waves make the matrix of a dense solver the largest array.
Deck dense_deck(double cutoff_ry) {
  return parse_deck(
      "[meanfield]\nsource = \"epm\"\ncell = \"cubic\"\nsupercell = [2, 2, 2]\n"
      "bands = 150\ncutoff_ry = " +
          std::to_string(cutoff_ry) +
          "\n[epsilon]\nwrite = false\ncutoff_ry = 0.8\n[sigma]\nband_min = 128\n"
          "band_max = 129\n",
      {}, "test", ".");
}
TEST(MemoryPlan, HoldsWithDenseStates) { check_plan(dense_deck(3.0), dense_deck(6.0)); }

}  // namespace
}  // namespace quasi::gw
