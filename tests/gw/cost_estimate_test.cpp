#include "workers/gw/cost_estimate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <ctime>

namespace quasi::gw {
namespace {

// What the pre-flight says against what the job then takes: within a factor of 3 either way, once the share of a core that other work on the
// machine left to the job is taken out (the estimate's short samples escape it). Two methods, so that the counts of pairs, energies and frequencies are all in it.
TEST(CostEstimate, SecondsWithinAFactorOfThree) {
  for (const char* method : {"hl-gpp", "contour"}) {
    SCOPED_TRACE(method);
    const auto kernels = make_gw_kernels(find_device("cpu"));
    SilentProgress silent;
    const std::string size = std::string(method) == "contour" ? "cutoff_ry = 4.0\nreal_max_ev = 8.0\nreal_step_ev = 0.5" : "cutoff_ry = 7.0";
    const Deck deck = parse_deck("kind = \"gw\"\n[meanfield]\nsource = \"epm\"\ncutoff_ry = 11.0\nbands = 60\nk_grid = [4, 4, 4]\n[epsilon]\n" + size +
                                     "\n[sigma]\nmethod = \"" + method + "\"\nband_max = 8\n", {}, "test", ".");
    const std::clock_t cpu_start = std::clock();
    const auto wall_start = std::chrono::steady_clock::now();
    const Calculation run = run_calculation(deck, *kernels, std::int64_t{1} << 30, silent);
    const double wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - wall_start).count();
    const double share = std::min(1.0, static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC / wall_s);
    for (const auto& [name, expected] : {std::pair{"epsilon", run.plan.epsilon_seconds}, {"sigma", run.plan.sigma_seconds}}) {
      const double taken = share * run.seconds.at(name);
      EXPECT_GT(expected, taken / 3.0) << name << " took " << taken;
      EXPECT_LT(expected, taken * 3.0) << name << " took " << taken;
      std::printf("%s %s: estimated %.3f s, took %.3f s\n", method, name, expected, taken);
    }
  }
}

// The line before the work starts.
TEST(CostEstimate, NamesSecondsAndMemory) {
  Plan plan;
  plan.epsilon_seconds = 12.0;
  plan.sigma_seconds = 3.5;
  plan.memory_bytes = std::int64_t{3} << 29;
  EXPECT_EQ(cost_line(plan), "estimate: ε 12 s, Σ 3.5 s, 1.50 GiB of device memory at most");
}

}  // namespace
}  // namespace quasi::gw
