#include "workers/gw/solver/calculation/cost/cost_estimate.hpp"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <functional>
#include <string>

#include "workers/backend/error.hpp"
#include "workers/gw/solver/calculation/early_checks.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/mean_field/eigensolver/operator_memory.hpp"
#include "workers/gw/solver/mean_field/load_mean_field.hpp"

namespace quasi::gw {
namespace {

// What the pre-flight says against what the job then takes: within a factor of 3 either way, once
// the share of a core that other work on the machine left to the job is taken out (the estimate's
// short samples escape it). Two methods, so that the counts of pairs, energies and frequencies are
// all in it.
TEST(CostEstimate, SecondsWithinAFactorOfThree) {
  for (const char* method : {"hl-gpp", "contour"}) {
    SCOPED_TRACE(method);
    const auto kernels = make_gw_kernels(find_device("cpu"));
    SilentProgress silent;
    const std::string size = std::string(method) == "contour"
                                 ? "cutoff_ry = 4.0\nreal_max_ev = 8.0\nreal_step_ev = 0.5"
                                 : "cutoff_ry = 7.0";
    const Deck deck = parse_deck(
        "kind = \"gw\"\n[meanfield]\nsource = \"epm\"\ncutoff_ry = 11.0\nbands = 60\nk_grid = [4, "
        "4, 4]\n[epsilon]\n" +
            size + "\n[sigma]\nmethod = \"" + method + "\"\nband_max = 8\n",
        {}, "test", ".");
    // The share changes while the job runs where the load does; then another run, with another
    // estimate, is judged.
    bool came_true = false;
    for (int attempt = 0; attempt < 5 && !came_true; ++attempt) {
      const std::clock_t cpu_start = std::clock();
      const auto wall_start = std::chrono::steady_clock::now();
      const Calculation run = run_calculation(deck, *kernels, std::int64_t{1} << 30, silent);
      const double wall_s =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - wall_start).count();
      const double share =
          std::min(1.0, static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC / wall_s);
      came_true = true;
      for (const auto& [name, expected] :
           {std::pair{"epsilon", run.plan.epsilon_seconds}, {"sigma", run.plan.sigma_seconds}}) {
        const double taken = share * run.seconds.at(name);
        came_true = came_true && expected > taken / 3.0 && expected < taken * 3.0;
        std::printf("%s %s: estimated %.3f s, took %.3f s\n", method, name, expected, taken);
      }
    }
    EXPECT_TRUE(came_true);
  }
}

// The line before the work starts.
TEST(CostEstimate, NamesSecondsAndMemory) {
  Plan plan;
  plan.epsilon_seconds = 12.0;
  plan.sigma_seconds = 3.5;
  plan.memory_bytes = std::int64_t{3} << 29;
  plan.host_bytes = std::int64_t{1} << 28;
  EXPECT_EQ(cost_line(plan),
            "estimate: ε 12 s, Σ 3.5 s, 1.50 GiB of device memory and 0.25 GiB of host memory");
  plan.error_bar_seconds = 7.0;
  EXPECT_EQ(cost_line(plan),
            "estimate: ε 12 s, Σ 3.5 s, error bars 7 s, 1.50 GiB of device memory and 0.25 GiB "
            "of host memory");
}

/// Γ of eight atoms, 100 plane waves in ε.
Deck small_deck(const std::string& more) {
  return parse_deck(
      "kind = \"gw\"\n[meanfield]\nsource = \"epm\"\ncell = \"cubic\"\ncutoff_ry = 5.0\nbands = "
      "130\n[epsilon]\ncutoff_ry = 3.0\n[sigma]\nband_min = 15\nband_max = 18\n" +
          more,
      {}, "test", ".");
}

// What cannot be cut must fit, and what does not is refused before the work starts, with the
// cut-off that would. Slices do not serve the static remainder (column_slices_test.cpp).
TEST(Memory, MatricesThatDoNotFitAreRefused) {
  SilentProgress silent;
  const auto kernels = make_gw_kernels(find_device("cpu"));
  DeviceTeam team(*kernels);
  const Deck deck = small_deck("static_remainder = true\n");
  const Calculation whole = run_calculation(deck,
                                            {.team = team,
                                             .memory_budget_bytes = std::int64_t{1} << 30,
                                             .memory_limit_bytes = std::int64_t{1} << 30},
                                            silent);
  const std::int64_t need = whole.plan.least_memory_bytes, n = whole.epsilon[0].size();
  EXPECT_NEAR(static_cast<double>(need), 48.0 * static_cast<double>(n * n),
              0.25 * static_cast<double>(need))
      << "spheres of a hundred plane waves are not round";
  try {
    run_calculation(deck,
                    {.team = team,
                     .memory_budget_bytes = std::int64_t{1} << 30,
                     .memory_limit_bytes = need / 2},
                    silent);
    FAIL() << "no error";
  } catch (const OutOfMemory& error) {
    const std::string message = error.what();
    for (const char* word :
         {"epsilon.cutoff_ry = 3 ", "Lower the cut-off to 2.36 Ry", "more devices do not help"})
      EXPECT_NE(message.find(word), std::string::npos) << message;
  }
}

// 1,000 atoms with 2,900 bands take hours on a processor. The refusal comes before the states: by
// a device that cannot hold one of 64 slices, or a host that cannot hold ε⁻¹ twice (79 GiB).
TEST(Memory, ABuiltInCrystalIsRefusedBeforeItsStates) {
  SilentProgress silent;
  const auto kernels = make_gw_kernels(find_device("cpu"));
  DeviceTeam team(*kernels);
  const Deck deck = parse_deck(
      "[meanfield]\nsource = \"epm\"\ncell = \"cubic\"\nsupercell = [5, 5, 5]\ncutoff_ry = 16.0\n"
      "bands = 2900\n[epsilon]\ncutoff_ry = 8.0\n",
      {}, "test", ".");
  for (const auto& [device, host] : {std::pair{std::int64_t{1} << 28, std::int64_t{0}},
                                     {std::int64_t{76} << 30, std::int64_t{76} << 30}}) {
    const Workplace place{.team = team,
                          .memory_budget_bytes = std::int64_t{1} << 30,
                          .memory_limit_bytes = device,
                          .host_limit_bytes = host};
    EXPECT_THROW(run_calculation(deck, place, silent), OutOfMemory);
    EXPECT_THROW(validated_plan(deck, place, silent), OutOfMemory);
  }
}

// A GPU of 76 GiB has room for a real ε of 1,000 atoms at 8 Ry (40 GiB), but not for a complex one
// (119 GiB). Polar crystals, shifted ones and other k-points have complex states.
TEST(Memory, RealCrystalsNeedAThirdOnAGpu) {
  constexpr double kLimit = 76.0 * 1073741824.0;
  EmpiricalCrystal crystal{.cubic_cell = true, .repeats = {5, 5, 5}};
  const double real = least_bytes_of_crystal(crystal, 8.0, false);
  EXPECT_NEAR(real, 16.0 * 51627.0 * 51627.0, 0.02 * real);
  EXPECT_LT(real, kLimit);
  EXPECT_DOUBLE_EQ(least_bytes_of_crystal(crystal, 8.0, true), 3.0 * real);
  crystal.origin_shift = {0.0, 0.01, 0.0};
  EXPECT_GT(least_bytes_of_crystal(crystal, 8.0, false), kLimit);
  crystal.origin_shift = {};
  crystal.k_grid = {1, 1, 3};
  EXPECT_GT(least_bytes_of_crystal(crystal, 8.0, false), kLimit);
  crystal.k_grid = {2, 2, 2};
  EXPECT_EQ(least_bytes_of_crystal(crystal, 8.0, false), real);
  crystal.disorder_bohr = 0.1;
  EXPECT_GT(least_bytes_of_crystal(crystal, 8.0, false), kLimit);
  crystal.disorder_bohr = 0.0;
  crystal.name = "gaas";
  EXPECT_GT(least_bytes_of_crystal(crystal, 8.0, false), kLimit);
}

// A GPU sums a real χ in 8 bytes an element and inverts ε beside it. The plan of a CPU, and of
// complex states, counts complex matrices.
TEST(Memory, PlansOfAGpuCountRealMatrices) {
  SilentProgress silent;
  const auto kernels = make_gw_kernels(find_device("cpu"));
  const auto least = [&](const char* crystal, bool on_cpu, double& per_element) {
    Deck deck = small_deck("");
    deck.mean_field.crystal.name = crystal;
    const MeanField field = load_mean_field(deck.mean_field, demand_of(deck), *kernels, silent);
    deck.stop_after_epsilon = true;
    const Plan plan = make_plan(deck, field, std::int64_t{1} << 30, nullptr, on_cpu);
    const double n_g = field.crystal().volume_bohr3 * std::pow(3.0, 1.5) / (6.0 * kPi * kPi);
    per_element = static_cast<double>(plan.least_memory_bytes) / (n_g * n_g);
    return plan.real_states;
  };
  double bytes = 0.0;
  EXPECT_TRUE(least("silicon", false, bytes));
  EXPECT_NEAR(bytes, 16.0, 0.01);
  EXPECT_TRUE(least("silicon", true, bytes));
  EXPECT_NEAR(bytes, 48.0, 0.01);
  EXPECT_FALSE(least("gaas", false, bytes));
  EXPECT_NEAR(bytes, 48.0, 0.01);
}

std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const OutOfMemory& error) {
    return error.what();
  }
  return "not refused";
}

// All 42,691 bands of 512 atoms take a processor days. LAPACK needs three real matrices beside the
// complex one and the states; the refusal comes before all of them.
TEST(Memory, ADenseDiagonalisationIsRefusedBeforeItsStates) {
  SilentProgress silent;
  const auto kernels = make_gw_kernels(find_device("cpu"));
  DeviceTeam team(*kernels);
  const Deck deck = parse_deck(
      "[meanfield]\nsource = \"epm\"\ncell = \"cubic\"\nsupercell = [4, 4, 4]\nbands = 42691\n"
      "[epsilon]\ncutoff_ry = 4.0\n",
      {}, "test", ".");
  Workplace place{.team = team, .memory_budget_bytes = std::int64_t{1} << 30};
  place.host_limit_bytes = std::int64_t{90} << 30;
  for (const std::string& message : {refusal([&] { run_calculation(deck, place, silent); }),
                                     refusal([&] { validated_plan(deck, place, silent); })})
    for (const char* part :
         {"meanfield.bands = 42691 ", "matrix of H of 42691 plane waves", "need 95.1 GiB of host",
          "the host has 90 GiB", "meanfield.solver = \"operator\""})
      EXPECT_NE(message.find(part), std::string::npos) << part << ": " << message;
}

// The room that a diagonalisation needs is enough, one byte less is refused, and an unknown limit
// refuses nothing.
TEST(Memory, ADenseDiagonalisationNeedsWhatIsStated) {
  const DenseStatesWork work{.n_pw = 100, .n_bands = 40, .n_lists = 3, .real = true};
  const CallMemory on_cpu = memory_of_dense_states(work, find_device("cpu")),
                   need{.device_bytes = 5000, .host_bytes = 7000};
  const std::int64_t lapack = 8 * 10000 + 8 * 100 + 4 * 503 + 8 * (601 + 20000);
  EXPECT_EQ(on_cpu.host_bytes, lapack + 16 * 10000 + 16 * 100 * 40 * 3);
  EXPECT_EQ(on_cpu.device_bytes, 0);
  const auto with = [&](std::int64_t device, std::int64_t host) {
    return refusal([&] {
      require_room_of_dense_states(work, "epsilon.bands = 40", need, {device, host});
    });
  };
  for (const std::int64_t host : {0, 7000})
    for (const std::int64_t device : {0, 5000}) EXPECT_EQ(with(device, host), "not refused");
  EXPECT_NE(with(5000, 6999).find("GiB of host memory"), std::string::npos);
  const std::string of_device = with(4999, 7000);
  for (const char* part :
       {"epsilon.bands = 40 ", "of 100 plane waves", "which one device must hold", "there are",
        "\"operator\"", "lower the cut-off"})
    EXPECT_NE(of_device.find(part), std::string::npos) << part << ": " << of_device;
}

// The work has spinors of 400 plane waves, 40 bands at three k-points, 12 projectors and a box of
// 10³ points. Its block has 48 states of 800 complex numbers. One byte less than stated is
// refused.
TEST(Memory, TheOperatorNeedsWhatIsStated) {
  const OperatorStatesWork work{
      .order = 800, .n_spinor = 2, .n_bands = 40, .n_lists = 3, .n_projectors = 12, .n_box = 1000};
  const std::int64_t block = 16 * 800 * 48, parts = 2 * 16 * 12 * 400 + 24 * 1000,
                     states = 16 * 800 * 40 * 3, threads = omp_get_max_threads();
  const CallMemory on_cpu = memory_of_operator_states(work, find_device("cpu"));
  EXPECT_EQ(on_cpu.host_bytes,
            states + parts + 2 * block + 3 * 16 * 48 * 48 + threads * 3 * 8 * 16 * 800);
  EXPECT_EQ(on_cpu.device_bytes, 0);
  const CallMemory need{.device_bytes = 5000, .host_bytes = 7000};
  const auto with = [&](std::int64_t device, std::int64_t host) {
    return refusal([&] {
      require_room_of_operator_states(work, "meanfield.bands = 40", need, {device, host});
    });
  };
  for (const std::int64_t host : {0, 7000})
    for (const std::int64_t device : {0, 5000}) EXPECT_EQ(with(device, host), "not refused");
  EXPECT_NE(with(5000, 6999).find("of host memory"), std::string::npos);
  const std::string of_device = with(4999, 7000);
  for (const char* part : {"meanfield.bands = 40 ", "of 800 coefficients", "of device memory",
                           "there are", "[pseudobands]", "lower the cut-off"})
    EXPECT_NE(of_device.find(part), std::string::npos) << part << ": " << of_device;
}

// A job with few plane waves in ε has its peak while its states are made. The plan says so.
TEST(Memory, ThePlanCountsTheDenseDiagonalisation) {
  SilentProgress silent;
  const auto kernels = make_gw_kernels(find_device("cpu"));
  DeviceTeam team(*kernels);
  const auto planned = [&](const std::string& solver) {
    const Deck deck = parse_deck(
        "[meanfield]\nsource = \"epm\"\ncell = \"cubic\"\ncutoff_ry = 8.0\nbands = 24\n" + solver +
            "[epsilon]\ncutoff_ry = 0.8\n",
        {}, "test", ".");
    return validated_plan(deck, {.team = team, .memory_budget_bytes = std::int64_t{1} << 30},
                          silent);
  };
  const Plan dense = planned(""), matrix_free = planned("solver = \"operator\"\n");
  const double n = 437.0;  // plane waves of eight atoms at 8 Ry
  EXPECT_NEAR(dense.host.mean_field, 40.0 * n * n + 16.0 * n * 25.0, 0.02 * dense.host.mean_field);
  EXPECT_EQ(dense.host_bytes, static_cast<std::int64_t>(dense.host.mean_field));
  EXPECT_GT(matrix_free.host.mean_field, 16.0 * n * 25.0);
  EXPECT_LT(matrix_free.host.mean_field, 0.3 * dense.host.mean_field);
  EXPECT_LT(matrix_free.host_bytes, dense.host_bytes);
}

// The budget is for work in blocks. Matrices of Σ that exceed it are held all the same, as long as
// the device has room; the energies are those of any other budget.
TEST(Memory, MatricesOfSigmaMayExceedTheBudget) {
  SilentProgress silent;
  const auto kernels = make_gw_kernels(find_device("cpu"));
  DeviceTeam team(*kernels);
  const Deck deck = small_deck("");
  const auto solved = [&](std::int64_t budget_bytes, std::int64_t limit_bytes) {
    return run_calculation(
        deck,
        {.team = team, .memory_budget_bytes = budget_bytes, .memory_limit_bytes = limit_bytes},
        silent);
  };
  const Calculation whole = solved(std::int64_t{1} << 30, std::int64_t{1} << 30);
  const std::int64_t n = whole.epsilon[0].size(), small = 16 * n * n;
  EXPECT_THROW(solved(small, 0), OutOfMemory) << "Σ needs 32 n² bytes";
  const Calculation cut = solved(small, std::int64_t{1} << 30);
  ASSERT_EQ(cut.quasiparticles.size(), whole.quasiparticles.size());
  for (std::size_t i = 0; i < whole.quasiparticles.size(); ++i)  // sums in another order
    EXPECT_NEAR(cut.quasiparticles[i].sigma_ev, whole.quasiparticles[i].sigma_ev, 1e-10);
}

// States, ε⁻¹ and W of a host are counted before the start; the states alone are exact.
TEST(Memory, AHostThatIsTooSmallIsRefused) {
  SilentProgress silent;
  const auto kernels = make_gw_kernels(find_device("cpu"));
  DeviceTeam team(*kernels);
  Deck deck = small_deck("");
  deck.mean_field.crystal.eigensolver.method = Eigensolver::kOperator;
  const Calculation whole =
      run_calculation(deck, {.team = team, .memory_budget_bytes = std::int64_t{1} << 30}, silent);
  double states = 0.0;
  for (const KPointWaves& at : whole.field.waves.waves)
    states += 16.0 * static_cast<double>(at.coefficients[0].size());
  EXPECT_GT(static_cast<double>(whole.plan.host_bytes), states);
  EXPECT_GT(whole.plan.host_bytes, whole.plan.screening_bytes);
  const auto start_with = [&](std::int64_t host_bytes) {
    run_calculation(deck,
                    {.team = team,
                     .memory_budget_bytes = std::int64_t{1} << 30,
                     .host_limit_bytes = host_bytes},
                    silent);
  };
  EXPECT_NO_THROW(start_with(whole.plan.host_bytes));
  try {
    start_with(whole.plan.host_bytes - 1);
    FAIL() << "no error";
  } catch (const OutOfMemory& error) {
    const std::string message = error.what();
    for (const char* word : {"GiB of host memory", "the host has", "epsilon.cutoff_ry = 3"})
      EXPECT_NE(message.find(word), std::string::npos) << message;
  }
}

// What can be cut is: bands on the box and their products in ever smaller blocks, up to the clear
// error of a budget that holds not one.
TEST(Memory, BandsComeInBlocks) {
  SilentProgress silent;
  const auto kernels = make_gw_kernels(find_device("cpu"));
  for (const char* more : {"", "full_matrix = true\nmatrix_step_ev = 4.0\n"}) {
    const Deck deck = small_deck(more);
    const Calculation whole = run_calculation(deck, *kernels, std::int64_t{1} << 30, silent),
                      cut = run_calculation(deck, *kernels, std::int64_t{1} << 20, silent);
    EXPECT_NE(whole.epsilon[0].inverse, cut.epsilon[0].inverse)
        << "to the last bit: the sums were not cut";
    ASSERT_EQ(whole.quasiparticles.size(), cut.quasiparticles.size());
    for (std::size_t i = 0; i < whole.quasiparticles.size(); ++i)
      EXPECT_NEAR(whole.quasiparticles[i].sigma_ev, cut.quasiparticles[i].sigma_ev, 1e-10);
    for (std::size_t i = 0; i < whole.self_test.size(); ++i)
      EXPECT_NEAR(whole.self_test[i].value.value_or(0.0), cut.self_test[i].value.value_or(0.0),
                  1e-9)
          << whole.self_test[i].name;
    for (std::size_t m = 0; m < whole.matrices.size(); ++m)
      for (std::size_t i = 0; i < whole.matrices[m].correlation_ry.size(); ++i)
        EXPECT_LT(std::abs(whole.matrices[m].correlation_ry[i] - cut.matrices[m].correlation_ry[i]),
                  1e-11);
  }
  EXPECT_THROW(run_calculation(small_deck(""), *kernels, std::int64_t{1} << 18, silent),
               OutOfMemory);
}

}  // namespace
}  // namespace quasi::gw
