// Tests that the host memory that a job plans is what its process uses in each phase. The test runs
// nightly.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>

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

/// Resident memory at its largest, bytes.
struct Peaks {
  double mean_field = 0.0;  ///< while states are made
  double screening = 0.0;   ///< from then on until ε⁻¹ is there
  double sigma = 0.0;       ///< from then on
  double whole = 0.0;       ///< of the process
};

/// Samples the resident memory of its process, and tells the phases of a job apart by its reports.
class MemorySamples final : public SilentProgress {
 public:
  MemorySamples() : sampler_([this] { sample(); }) {}
  ~MemorySamples() override {
    ended_ = true;
    sampler_.join();
  }
  void log(std::string_view line) override {
    if (line.starts_with("static polarizability")) phase_ = 2;
  }
  Peaks peaks() const { return {peak_[0], peak_[1], peak_[2]}; }

 protected:
  void on_report(std::string_view phase, std::int64_t done, std::int64_t total) override {
    if (phase == "mean field" && done == total) phase_ = 1;
  }

 private:
  void sample() {
    while (!ended_) {
      std::ifstream pages("/proc/self/statm");
      double virtual_pages = 0.0, resident_pages = 0.0;
      pages >> virtual_pages >> resident_pages;
      double& peak = peak_[phase_];
      peak = std::max(peak, resident_pages * static_cast<double>(sysconf(_SC_PAGESIZE)));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  std::atomic<bool> ended_{false};
  std::atomic<std::size_t> phase_{0};
  std::array<double, 3> peak_{};
  std::thread sampler_;
};

/// Runs a job in a process of its own.
Peaks peaks_of(const Deck& deck) {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    MemorySamples samples;
    const auto kernels = make_gw_kernels(find_device("cpu"));
    run_calculation(deck, *kernels, std::int64_t{1} << 30, samples);
    const Peaks peaks = samples.peaks();
    _exit(write(ends[1], &peaks, sizeof peaks) == sizeof peaks ? 0 : 1);
  }
  close(ends[1]);
  Peaks peaks;
  EXPECT_EQ(read(ends[0], &peaks, sizeof peaks), static_cast<ssize_t>(sizeof peaks));
  close(ends[0]);
  int status = 0;
  rusage used{};
  EXPECT_EQ(wait4(child, &status, 0, &used), child);
  EXPECT_EQ(status, 0);
  peaks.whole = 1024.0 * static_cast<double>(used.ru_maxrss);
  return peaks;
}

/// Returns the plan of a job as peaks of its phases.
Peaks planned_peaks(const Deck& deck) {
  SilentProgress silent;
  const auto kernels = make_gw_kernels(find_device("cpu"));
  DeviceTeam team(*kernels);
  const Plan plan =
      validated_plan(deck, {.team = team, .memory_budget_bytes = std::int64_t{1} << 30}, silent);
  const HostPhases& host = plan.host;
  return {host.mean_field, host.states + std::max(host.density, host.epsilon),
          host.states + std::max(host.sigma, host.error_bars),
          static_cast<double>(plan.host_bytes)};
}

// The difference between two jobs is the memory of their arrays, without the rest of the process.
// The plan must hold within 20 %, and in each phase within 8 MiB more, which sampling and the
// allocator explain. A phase with less than half of the peak may take less than is planned.
void check_plan(const Deck& small, const Deck& large) {
  const Peaks less = peaks_of(small), used = peaks_of(large), less_planned = planned_peaks(small),
              planned = planned_peaks(large);
  constexpr double kMib = 1048576.0;
  const auto check = [&](const char* phase, double Peaks::*of, double slack) {
    const double grown = used.*of - less.*of, expected = planned.*of - less_planned.*of;
    std::printf("%s: %.0f MiB used, %.0f planned (from %.0f, %.0f to %.0f, %.0f)\n", phase,
                grown / kMib, expected / kMib, less.*of / kMib, less_planned.*of / kMib,
                used.*of / kMib, planned.*of / kMib);
    EXPECT_LE(grown, 1.2 * expected + slack) << phase;
    if (expected > 0.5 * (planned.whole - less_planned.whole)) {
      EXPECT_GE(grown, 0.8 * expected - slack) << phase;
    }
  };
  check("mean field", &Peaks::mean_field, 8.0 * kMib);
  check("screening", &Peaks::screening, 8.0 * kMib);
  check("sigma", &Peaks::sigma, 8.0 * kMib);
  check("whole job", &Peaks::whole, 0.0);
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

/// 64 atoms whose 300 spinors of 1,500 or 4,200 coefficients are the largest arrays.
Deck spinor_deck(double cutoff_ry) {
  return parse_deck(
      "[meanfield]\nsource = \"epm\"\ncell = \"cubic\"\nsupercell = [2, 2, 2]\n"
      "crystal = \"germanium\"\nspin_orbit_ry_bohr2 = 0.013\nsolver = \"operator\"\n"
      "residual_ry = 1e-4\nbands = 300\ncutoff_ry = " +
          std::to_string(cutoff_ry) +
          "\n[epsilon]\nwrite = false\ncutoff_ry = 0.5\n[sigma]\nband_min = 255\n"
          "band_max = 258\n",
      {}, "test", ".");
}
TEST(MemoryPlan, HoldsWithSpinorsOfTheOperator) { check_plan(spinor_deck(3.0), spinor_deck(6.0)); }

}  // namespace
}  // namespace quasi::gw
