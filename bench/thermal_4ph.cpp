// Four-phonon scattering step of a deck: times, process counts, work done against the device's
// peak.
//
//   thermal_4ph_bench DECK [--mesh N] [--sb X] [--compat] [--device D] [--tiles N] [--strategies
//   all|device] [--naive]
//                     [--without exchange|inversion] [--set key=value]
//
// --tiles N takes N tiles of total momenta, evenly spread, instead of the whole mesh.
// --strategies adds one line for each published strategy on the same problem; `device` leaves out
// the one whose list is made on the host, which takes longest.
// --without leaves out a short cut of the sums: that λ and λ' change places, or that a centre of
// inversion halves the matrix element (both hold with the default rules only).
// --naive adds the processor time of a process by the block sum on one core.
// Prints one JSON line a case.
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

/// Of this process: what other work on the machine does not stretch.
double processor_s() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Options {
  std::string deck;
  std::string device = "auto";
  std::vector<Setting> settings;
  std::int32_t tiles = 0;  ///< 0: all
  std::string strategies;  ///< empty: none
  bool naive = false;
  bool exchange = true, inversion = true;
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
        "[--without exchange|inversion] [--set key=value]");
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
    else if (key == "--set")
      o.settings.push_back(parse_setting(value));
    else
      throw InvalidInput("unknown option " + key);
  }
  return o;
}

int run(int argc, char** argv) {
  const Options o = parse(argc, argv);
  const Device device = find_device(o.device);
  const Control control = read_control(o.deck, o.settings);
  const Crystal crystal = make_crystal(control);
  const Symmetry symmetry = find_symmetry(crystal, control.symmetry_options());
  SilentProgress silent;
  double start = now_s();
  const Modes modes = solve_harmonic(crystal, read_second_order(o.deck, control, crystal), symmetry,
                                     control.harmonic_options(), silent);
  const double harmonic_s = now_s() - start;
  start = now_s();
  const SparseForceConstants fourth = read_sparse_force_constants(
      std::filesystem::path(o.deck) / "FORCE_CONSTANTS_4TH", 4, crystal);
  const double read_s = now_s() - start;
  start = now_s();
  Problem4ph problem = make_problem_4ph(crystal, modes, symmetry, control.four_phonon_options(),
                                        fourth, symmetry.irreducible);
  if (!o.exchange) problem.star.clear();
  if (!o.inversion) {
    problem.plan = plan_contraction_4ph(crystal, fourth);
    problem.phase = phase_table_4ph(problem.mesh, problem.plan);
  }
  const double prepare_s = now_s() - start;
  use_device(device);
  const std::int64_t free_before = free_memory_bytes(device);
  const auto kernels = make_scattering_kernels_4ph(
      device, static_cast<std::int64_t>(control.memory_budget_mib * 1048576.0));
  start = now_s();
  kernels->load(problem);
  const double load_s = now_s() - start;

  const TilePlan4ph plan = plan_tiles_4ph(problem);
  const auto n_tiles = static_cast<std::int32_t>(plan.size());
  const std::int32_t tiles = o.tiles > 0 ? std::min(o.tiles, n_tiles) : n_tiles;
  const SumLayout4ph layout{static_cast<int>(problem.temperatures_k.size())};
  double count[3] = {}, evaluations = 0.0, check = 0.0;
  start = now_s();
  const double processor_start = processor_s();
  const auto place_of = [&](std::int32_t i) {
    return static_cast<std::int64_t>(i) * n_tiles / tiles;
  };
  for (std::int32_t i = 0; i < tiles; ++i) {
    const auto of = [&](std::int32_t tile) {
      return std::pair(plan.first_total(place_of(tile)), plan.last_total(place_of(tile)));
    };
    if (i + 1 < tiles) kernels->expect(of(i + 1).first, of(i + 1).second);
    const auto sums = kernels->sums(of(i).first, of(i).second);
    for (std::size_t r = 0; r < sums.size(); r += static_cast<std::size_t>(layout.size())) {
      count[r / layout.size() % 3] += sums[r + layout.six_count()] / 6.0;
      evaluations += sums[r + layout.evaluations()];
      check += sums[r] + sums[r + 1];
    }
  }
  const double scatter_s = now_s() - start;
  const double scatter_processor_s = processor_s() - processor_start;
  const std::int64_t used = free_before - free_memory_bytes(device);
  const double flops =
      8.0 * static_cast<double>(kernels->multiply_adds_per_process()) * evaluations;
  std::printf(
      "{\"case\": \"scattering 4ph\", \"device\": \"%s\", \"mesh\": %d, \"sb\": %g, \"rules\": "
      "\"%s\", \"exchange\": %d, \"inversion\": %d, "
      "\"blocks\": %d, \"pairs\": %d, \"temperatures\": %d, \"tiles\": [%d, %d], "
      "\"processes\": [%.0f, %.0f, %.0f], \"evaluations\": %.6g, \"multiply_adds_per_process\": "
      "%lld, "
      "\"harmonic_s\": %.3f, \"read_s\": %.3f, \"prepare_s\": %.3f, \"load_s\": %.3f, "
      "\"scattering_s\": %.3f, \"processor_s\": %.3f, "
      "\"evaluation_tflops\": %.3f, \"memory_mib\": %lld, \"checksum\": %.12e}\n",
      device.model.c_str(), problem.mesh.n[0], control.scale_broad,
      control.compat ? "fourphonon" : "default", !problem.star.empty(), problem.plan.real_elements,
      problem.plan.n_blocks, problem.plan.n_pairs, layout.n_temperatures, tiles, n_tiles, count[0],
      count[1], count[2], evaluations, static_cast<long long>(kernels->multiply_adds_per_process()),
      harmonic_s, read_s, prepare_s, load_s, scatter_s, scatter_processor_s,
      flops / scatter_s * 1e-12, static_cast<long long>(used >> 20), check);
  std::fflush(stdout);
  if (!o.strategies.empty())
    compare_strategies(device, problem, o.strategies == "all", scatter_s, check);
  if (o.naive) time_naive(problem);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "thermal_4ph_bench: %s\n", failure.what());
    return 1;
  }
}
