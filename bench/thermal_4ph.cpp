// Times the four-phonon scattering step of a deck, and counts its processes and operations. Each
// case is one JSON line.
//
//   thermal_4ph_bench DECK [--mesh N] [--sb X] [--compat] [--device D] [--tiles N]
//                     [--strategies all|device] [--naive] [--without exchange|inversion]
//                     [--rounds N] [--set key=value]
//
// --tiles N       takes N tiles of total momenta, evenly spread, instead of the whole mesh
// --strategies    adds one line for each published strategy on the same problem; `device` leaves
// out
//                 the strategy whose list is made on the host, which takes longest
// --without       leaves out a short cut of the sums: the exchange of λ and λ', or the centre of
//                 inversion that halves the matrix element (both hold with the default rules only)
// --rounds N      loads and sums N times and prints a line for each
// --naive         adds the processor time of a process by the block sum on one core

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "bench/published/published_sums_4ph.hpp"
#include "workers/backend/error.hpp"
#include "workers/thermal/input/control/control.hpp"
#include "workers/thermal/input/deck/crystal_input.hpp"
#include "workers/thermal/input/force_constants/force_constants.hpp"
#include "workers/thermal/solver/four_phonon/scattering_4ph.hpp"
#include "workers/thermal/solver/four_phonon/share_tiles.hpp"

namespace {

using namespace quasi;
using namespace quasi::thermal;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Returns the processor time of this process, which other work on the machine does not change.
double processor_s() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Options {
  std::string deck;
  std::string device = "auto";
  std::vector<Setting> settings;
  std::int32_t tiles = 0;  ///< 0: all
  std::string strategies;  ///< empty: none
  bool naive = false;
  bool exchange = true, inversion = true;
  int rounds = 1;
};

/// Prints the seconds of each published strategy, beside those of the factorised sums.
/// @param check  Σ m W|V|² of the factorised sums
void compare_strategies(const Device& device, const Problem4ph& problem, bool on_host_too,
                        double factorised_s, double check) {
  const std::int64_t budget_bytes = free_memory_bytes(device) / 2;
  const SumLayout4ph layout{static_cast<int>(problem.temperatures_k.size())};
  const std::pair<PublishedStrategy, const char*> strategies[] = {
      {PublishedStrategy::kListHost, "list on the host, all at once"},
      {PublishedStrategy::kListDevice, "list on the device, all at once"},
      {PublishedStrategy::kModeByMode, "list of one mode at a time"},
      {PublishedStrategy::kTestAndSum, "test and sum in one kernel"}};
  for (const auto& [strategy, name] : strategies) {
    if (strategy == PublishedStrategy::kListHost && !on_host_too) continue;
    StrategySeconds seconds;
    const double start = now_s();
    const auto sums = published_sums_4ph(device, problem, strategy, budget_bytes, seconds);
    const double whole_s = now_s() - start;
    double own = 0.0;
    for (std::size_t r = 0; r < sums.size(); r += static_cast<std::size_t>(layout.size()))
      own += sums[r] + sums[r + 1];
    std::printf(
        "{\"case\": \"strategy\", \"mesh\": %d, \"name\": \"%s\", \"enumerate_s\": %.3f, "
        "\"evaluate_s\": %.3f, "
        "\"whole_s\": %.3f, \"over_factorised\": %.1f, \"difference\": %.1e}\n",
        problem.mesh.n[0], name, seconds.enumerate, seconds.evaluate, whole_s,
        whole_s / factorised_s, std::fabs(own / check - 1.0));
    std::fflush(stdout);
  }
}

/// Processor time of one block sum on one core, over tuples spread through the mesh.
void time_naive(const Problem4ph& problem) {
  const Tables4ph tables = host_tables(problem);
  const auto n = static_cast<std::int32_t>(tables.n_modes());
  double sum = 0.0;
  std::int64_t done = 0;
  const double start = processor_s();
  for (std::int32_t i = 0; processor_s() - start < 2.0; ++i, ++done)
    sum += squared_element_by_blocks(tables, Channel4ph::kRedistribution, i * 7 % n, i * 13 % n,
                                     i * 29 % n, i * 31 % n);
  std::printf(
      "{\"case\": \"block sum, one core\", \"blocks\": %d, \"microseconds_per_process\": %.3f, "
      "\"checksum\": %.3e}\n",
      problem.plan.n_blocks, (processor_s() - start) / static_cast<double>(done) * 1e6, sum);
}

Options parse(int argc, char** argv) {
  Options o;
  if (argc < 2)
    throw InvalidInput(
        "usage: thermal_4ph_bench DECK [--mesh N] [--sb X] [--compat] "
        "[--device D] [--tiles N] [--strategies all|device] [--naive] "
        "[--without exchange|inversion] [--rounds N] [--set key=value]");
  o.deck = argv[1];
  o.settings.push_back({"four_phonon", ".true."});
  for (int i = 2; i < argc; ++i) {
    const std::string key = argv[i];
    if (key == "--naive") {
      o.naive = true;
      continue;
    }
    if (key == "--compat") {
      o.settings.push_back({"compat", "fourphonon"});
      continue;
    }
    if (++i >= argc) throw InvalidInput(key + " needs a value");
    const std::string value = argv[i];
    if (key == "--mesh")
      o.settings.push_back({"ngrid", value + " " + value + " " + value});
    else if (key == "--sb")
      o.settings.push_back({"scalebroad", value});
    else if (key == "--device")
      o.device = value;
    else if (key == "--strategies")
      o.strategies = value;
    else if (key == "--tiles")
      o.tiles = std::atoi(value.c_str());
    else if (key == "--without" && value == "exchange")
      o.exchange = false;
    else if (key == "--without" && value == "inversion")
      o.inversion = false;
    else if (key == "--rounds")
      o.rounds = std::atoi(value.c_str());
    else if (key == "--set")
      o.settings.push_back(parse_setting(value));
    else
      throw InvalidInput("unknown option " + key);
  }
  return o;
}

/// The problem of a deck and the seconds that it took to make.
struct TimedProblem {
  Control control;
  Problem4ph problem = {};
  double harmonic_s = 0.0, read_s = 0.0, prepare_s = 0.0;
};

TimedProblem make_problem(const Options& o) {
  TimedProblem timed{.control = read_control(o.deck, o.settings)};
  const Crystal crystal = make_crystal(timed.control);
  const Symmetry symmetry = find_symmetry(crystal, timed.control.symmetry_options());
  SilentProgress silent;
  double start = now_s();
  const Modes modes = solve_harmonic(crystal, read_second_order(o.deck, timed.control, crystal),
                                     symmetry, timed.control.harmonic_options(), silent);
  timed.harmonic_s = now_s() - start;
  start = now_s();
  const SparseForceConstants fourth = read_sparse_force_constants(
      std::filesystem::path(o.deck) / "FORCE_CONSTANTS_4TH", 4, crystal);
  timed.read_s = now_s() - start;
  start = now_s();
  Problem4ph& problem = timed.problem;
  problem = make_problem_4ph(crystal, modes, symmetry, timed.control.four_phonon_options(), fourth,
                             symmetry.irreducible);
  if (!o.exchange) problem.star.clear();
  if (!o.inversion) {
    problem.plan = plan_contraction_4ph(crystal, fourth);
    problem.phase = phase_table_4ph(problem.mesh, problem.plan);
  }
  timed.prepare_s = now_s() - start;
  return timed;
}

/// Sums over tiles of total momenta, and the time that they took.
struct ScatteringTotals {
  std::int32_t tiles = 0, all_tiles = 0;
  double processes[3] = {};  ///< recombination, redistribution, splitting
  double evaluations = 0.0;
  double matrix_elements = 0.0;  ///< Σ m W|V|²
  double wall_s = 0.0, processor_s = 0.0;
};

/// Sums `wanted` tiles, evenly spread through the mesh; all of them if it is 0.
ScatteringTotals sum_tiles(const Problem4ph& problem, std::int32_t wanted,
                           ScatteringKernels4ph& kernels) {
  const TilePlan4ph plan = plan_tiles_4ph(problem);
  const SumLayout4ph layout{static_cast<int>(problem.temperatures_k.size())};
  ScatteringTotals totals{};
  totals.all_tiles = static_cast<std::int32_t>(plan.size());
  totals.tiles = wanted > 0 ? std::min(wanted, totals.all_tiles) : totals.all_tiles;
  const auto total_momenta = [&](std::int32_t i) {
    const std::int64_t tile = static_cast<std::int64_t>(i) * totals.all_tiles / totals.tiles;
    return std::pair(plan.first_total(tile), plan.last_total(tile));
  };
  const double start_s = now_s(), processor_start_s = processor_s();
  for (std::int32_t i = 0; i < totals.tiles; ++i) {
    if (i + 1 < totals.tiles) {
      const auto [first, last] = total_momenta(i + 1);
      kernels.expect(first, last);
    }
    const auto [first, last] = total_momenta(i);
    const auto sums = kernels.sums(first, last);
    for (std::size_t r = 0; r < sums.size(); r += static_cast<std::size_t>(layout.size())) {
      totals.processes[r / layout.size() % 3] += sums[r + layout.six_count()] / 6.0;
      totals.evaluations += sums[r + layout.evaluations()];
      totals.matrix_elements += sums[r] + sums[r + 1];
    }
  }
  totals.wall_s = now_s() - start_s;
  totals.processor_s = processor_s() - processor_start_s;
  return totals;
}

struct DeviceUse {
  double load_s;
  std::int64_t memory_bytes;
  std::int64_t multiply_adds_per_process;
};

void print_scattering(const Device& device, const TimedProblem& timed, const DeviceUse& use,
                      const ScatteringTotals& totals) {
  const Problem4ph& problem = timed.problem;
  const double flops =
      8.0 * static_cast<double>(use.multiply_adds_per_process) * totals.evaluations;
  std::printf(
      "{\"case\": \"scattering 4ph\", \"device\": \"%s\", \"mesh\": %d, \"sb\": %g, \"rules\": "
      "\"%s\", \"exchange\": %d, \"inversion\": %d, \"blocks\": %d, \"pairs\": %d, "
      "\"temperatures\": %d, \"tiles\": [%d, %d], \"processes\": [%.0f, %.0f, %.0f], "
      "\"evaluations\": %.6g, \"multiply_adds_per_process\": %lld, ",
      device.model.c_str(), problem.mesh.n[0], timed.control.scale_broad,
      timed.control.compat ? "fourphonon" : "default", !problem.star.empty(),
      problem.plan.real_elements, problem.plan.n_blocks, problem.plan.n_pairs,
      static_cast<int>(problem.temperatures_k.size()), totals.tiles, totals.all_tiles,
      totals.processes[0], totals.processes[1], totals.processes[2], totals.evaluations,
      static_cast<long long>(use.multiply_adds_per_process));
  std::printf(
      "\"harmonic_s\": %.3f, \"read_s\": %.3f, \"prepare_s\": %.3f, \"load_s\": %.3f, "
      "\"scattering_s\": %.3f, \"processor_s\": %.3f, \"evaluation_tflops\": %.3f, "
      "\"memory_mib\": %lld, \"checksum\": %.12e}\n",
      timed.harmonic_s, timed.read_s, timed.prepare_s, use.load_s, totals.wall_s,
      totals.processor_s, flops / totals.wall_s * 1e-12,
      static_cast<long long>(use.memory_bytes >> 20), totals.matrix_elements);
  std::fflush(stdout);
}

void run(const Options& o) {
  const Device device = find_device(o.device);
  const TimedProblem timed = make_problem(o);
  use_device(device);
  ScatteringTotals totals;
  for (int round = 0; round < o.rounds; ++round) {
    const std::int64_t free_before_bytes = free_memory_bytes(device);
    const auto kernels = make_scattering_kernels_4ph(
        device, static_cast<std::int64_t>(timed.control.memory_budget_mib * 1048576.0));
    const double start = now_s();
    kernels->load(timed.problem);
    const double load_s = now_s() - start;
    totals = sum_tiles(timed.problem, o.tiles, *kernels);
    print_scattering(device, timed,
                     {.load_s = load_s,
                      .memory_bytes = free_before_bytes - free_memory_bytes(device),
                      .multiply_adds_per_process = kernels->multiply_adds_per_process()},
                     totals);
  }
  if (!o.strategies.empty())
    compare_strategies(device, timed.problem, o.strategies == "all", totals.wall_s,
                       totals.matrix_elements);
  if (o.naive) time_naive(timed.problem);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(parse(argc, argv));
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "thermal_4ph_bench: %s\n", failure.what());
    return 1;
  }
}
