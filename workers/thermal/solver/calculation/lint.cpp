#include "workers/thermal/solver/calculation/lint.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>

#include "workers/thermal/solver/calculation/case_checks.hpp"
#include "workers/thermal/solver/four_phonon/four_phonon_run.hpp"
#include "workers/thermal/solver/four_phonon/sampling_4ph.hpp"
#include "workers/thermal/solver/four_phonon/scattering_4ph.hpp"
#include "workers/thermal/solver/four_phonon/tile_plan_4ph.hpp"
#include "workers/thermal/solver/three_phonon/scattering.hpp"

namespace quasi::thermal {
namespace {

/// Estimates the seconds of the three-phonon step from one to eight of its points on the device.
/// @param keep  true: the kernels keep the list of processes
double measure_3ph(const std::vector<double>& temperatures_k, const Modes& modes,
                   ThreePhononProblem problem, const Device& device, bool keep) {
  const std::vector<std::int32_t> all = problem.rows;
  SilentProgress silent;
  double seconds = 0.0;
  for (std::size_t n = 1; n <= 8 && n <= all.size(); n *= 8) {
    problem.rows.clear();
    for (std::size_t i = 0; i < n; ++i) problem.rows.push_back(all[(i + 1) * all.size() / (n + 1)]);
    problem.modes = &modes;
    const auto kernels = make_three_phonon_kernels(device);
    kernels->load(problem);
    if (n == 1 && device.backend != Backend::kCpu)
      kernels->rates(temperatures_k, false, silent);  // first touch
    const auto start = std::chrono::steady_clock::now();
    kernels->rates(temperatures_k, keep, silent);
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() *
              static_cast<double>(all.size()) / static_cast<double>(n);
    if (seconds > 0.2 * static_cast<double>(all.size()) / 8.0)
      break;  // one point is slow enough to tell
  }
  return seconds;
}

/// Plans the collision operator with four phonons: its size, and whether it is kept from one
/// iteration to the next and on disk.
/// @param limit  of the checkpoint, bytes
void plan_iteration_4ph(double limit, ConductivityRun& run, const Problem4ph& problem,
                        const ScatteringKernels4ph& kernels, nlohmann::json& plan) {
  const double bytes = collision_bytes(
      static_cast<std::int64_t>(problem.point.size()) * problem.n_branches, run.modes.n_modes());
  const auto text = [](double x, double unit) { return std::to_string(std::llround(x / unit)); };
  const auto fit = kernels.collision_points_that_fit(),
             n_points = static_cast<std::int64_t>(problem.point.size());
  plan["collision_4ph_bytes"] = bytes;
  plan["collision_4ph_passes_per_iteration"] = fit >= n_points ? 0 : 1;
  plan["checkpoint_4ph_bytes"] = bytes <= limit ? bytes : 0.0;
  if (fit < n_points)
    run.warnings.push_back(
        "the collision operator with four phonons takes " + text(bytes, 1048576.0) +
        " MiB, of which the device holds " +
        text(100.0 * static_cast<double>(fit) / static_cast<double>(n_points), 1.0) +
        " % at once: every iteration computes all four-phonon processes again; use several "
        "devices, or raise "
        "'memory_budget_mib' if it is set");
  if (bytes > limit)
    run.warnings.push_back("the collision operator with four phonons takes " +
                           text(bytes, 1048576.0) +
                           " MiB, above 'checkpoint_limit_mib' = " + text(limit, 1048576.0) +
                           ": it is not checkpointed, and a job that is killed builds it again");
}

/// Estimates the seconds of `draws` uniform draws for each mode and channel from the first of them.
double seconds_of_draws(ScatteringKernels4ph& kernels, std::int64_t draws) {
  constexpr double kEnough_s = 0.3;
  for (std::int64_t first = 8;; first *= 4) {
    const std::int64_t some = std::min(first, draws);
    const auto start = std::chrono::steady_clock::now();
    kernels.sample_uniform(1, 0, some, true);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (seconds > kEnough_s || some == draws)
      return seconds * static_cast<double>(draws) / static_cast<double>(some);
  }
}

/// Estimates the seconds of one pass over all four-phonon processes from some total momenta.
/// @param weights_only  true: the pass of a sample, which evaluates no matrix elements
double seconds_of_all(const Problem4ph& problem, ScatteringKernels4ph& kernels,
                      const Device& device, bool weights_only) {
  const auto seconds_of = [&](std::int32_t first, std::int32_t last) {
    const auto start = std::chrono::steady_clock::now();
    if (weights_only)
      kernels.thinned_sums({}, first, last);
    else
      kernels.sums(first, last);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  double seconds = 0.0;
  double share = 0.0;
  if (device.backend == Backend::kCpu) {  // total momenta here and there, for two seconds
    const auto n = static_cast<std::int32_t>(problem.mesh.size());
    for (int i = 1; i <= 16 && seconds < 2.0; ++i) {
      const double at = 0.6180339887498949 * i;
      const auto total = static_cast<std::int32_t>((at - std::floor(at)) * n);
      seconds += seconds_of(total, total + 1);
      share += 1.0 / n;
    }
  } else {  // a tile of middling work, once the device is awake
    const TilePlan4ph tiles = plan_tiles_4ph(problem);
    const std::int64_t place = tiles.size() / 2;
    seconds_of(tiles.first_total(place), tiles.last_total(place));
    seconds = seconds_of(tiles.first_total(place), tiles.last_total(place));
    share = tiles.work(place) / tiles.work_before.back();
  }
  return seconds / share;
}

void plan_4ph(const LatticeModel& model, const CaseOptions& options, ConductivityRun& run,
              const Device& device, nlohmann::json& plan) {
  const auto processes =
      estimate_processes_4ph(model.symmetry, options.four_phonon, run.modes, 2'000'000);
  plan["processes_4ph_estimate"] = {{"recombination", std::llround(processes[0])},
                                    {"redistribution", std::llround(processes[1])},
                                    {"splitting", std::llround(processes[2])}};
  const Problem4ph problem =
      make_problem_4ph(model.crystal, run.modes, model.symmetry, options.four_phonon,
                       *model.fourth_order, model.symmetry.irreducible);
  const auto kernels = make_scattering_kernels_4ph(device, options.four_phonon.memory_budget_bytes);
  kernels->load(problem);
  plan["memory_4ph_bytes"] = kernels->memory_bytes(problem);
  if (options.four_phonon.iteration)
    plan_iteration_4ph(options.collision_checkpoint_limit_bytes, run, problem, *kernels, plan);
  const SamplingOptions& sampling = options.four_phonon.sampling;
  if (sampling.enabled && sampling.estimator == Sampling::kUniform) {
    const std::int64_t draws = sampling.draws > 0 ? sampling.draws : kFirstUniformDraws4ph;
    plan["draws_4ph"] = draws;
    plan["seconds_4ph_estimate"] = seconds_of_draws(*kernels, draws);
    return;
  }
  // A sample by weight goes over all processes twice, for their weights and for the draws.
  const double passes = sampling.enabled ? 2.0 : 1.0;
  plan["seconds_4ph_estimate"] =
      passes * seconds_of_all(problem, *kernels, device, sampling.enabled);
}

}  // namespace

std::array<double, 3> estimate_processes_4ph(const Symmetry& symmetry,
                                             const FourPhononOptions& options, const Modes& modes,
                                             std::int64_t n_draws) {
  const Rules4ph rules = rules_4ph(options, modes);
  const QMesh& mesh = symmetry.mesh;
  const int nb = modes.n_branches;
  const auto set = [&](std::int32_t mode) {
    return options.average_degenerate
               ? mode / nb * nb + modes.subspace[static_cast<std::size_t>(mode)]
               : mode;
  };
  const double rows = static_cast<double>(symmetry.n_irreducible()) * nb;
  const double box =
      rows * std::pow(static_cast<double>(mesh.size()), 2) * std::pow(static_cast<double>(nb), 3);
  std::array<double, 3> result{};
  constexpr std::int64_t kStreams =
      64;  // fixed, so that the estimate does not depend on the threads
  for (const Channel4ph channel :
       {Channel4ph::kRecombination, Channel4ph::kRedistribution, Channel4ph::kSplitting}) {
    std::array<double, kStreams> sums{};
#pragma omp parallel for schedule(dynamic, 1)
    for (std::int64_t stream = 0; stream < kStreams; ++stream) {
      std::mt19937_64 random(
          static_cast<std::uint64_t>(7919 * (stream + 1) + static_cast<int>(channel)));
      const auto below = [&](std::int64_t n) {
        return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
      };
      for (std::int64_t draw = 0; draw < n_draws / kStreams; ++draw) {
        const std::int64_t q0 =
            symmetry.irreducible[static_cast<std::size_t>(below(symmetry.n_irreducible()))];
        const std::int64_t q1 = below(mesh.size());
        const std::int64_t q2 = below(mesh.size());
        const std::int64_t q3 =
            mesh.add(mesh.add(q0, q1, sign_second(channel)), q2, sign_third(channel));
        const std::int32_t mode[4] = {static_cast<std::int32_t>(q0 * nb + below(nb)),
                                      static_cast<std::int32_t>(q1 * nb + below(nb)),
                                      static_cast<std::int32_t>(q2 * nb + below(nb)),
                                      static_cast<std::int32_t>(q3 * nb + below(nb))};
        bool active = true;
        for (const std::int32_t m : mode)
          active = active && modes.active(m, options.omega_max_rad_ps);
        if (!active || (channel != Channel4ph::kRecombination && mode[2] > mode[3])) continue;
        const double multiplicity =
            multiplicity_4ph(channel, rules.exact_weights, mode[1], mode[2], mode[3]);
        if (channel == Channel4ph::kRedistribution &&
            exchanges_nothing(set(mode[0]), set(mode[1]), set(mode[2]), set(mode[3])))
          continue;
        FourPhonons phonons;
        for (int i = 0; i < 4; ++i) {
          phonons.omega_rad_ps[i] = modes.omega_rad_ps[static_cast<std::size_t>(mode[i])];
          phonons.spread_rad_ps[i] = &modes.spread_rad_ps[static_cast<std::size_t>(3 * mode[i])];
        }
        sums[static_cast<std::size_t>(stream)] +=
            find_process_4ph(channel, rules, multiplicity, phonons).multiplicity;
      }
    }
    double sum = 0.0;
    for (const double s : sums) sum += s;
    result[static_cast<std::size_t>(channel)] =
        box * sum / static_cast<double>(n_draws / kStreams * kStreams);
  }
  return result;
}

namespace {

/// Plans the memory of three phonons and whether iterations compute all processes again, and
/// estimates their time.
void plan_3ph(const CaseOptions& options, std::int64_t processes, ThreePhononProblem problem,
              ConductivityRun& run, const Device& device, nlohmann::json& plan) {
  const bool iterated = options.transport.iteration.enabled;
  plan["processes_3ph_estimate"] = processes;
  plan["memory_bytes"] =
      (iterated ? processes * 16 : 0) + run.modes.n_modes() * (16 * run.modes.n_branches + 160);
  plan["free_memory_bytes"] = free_memory_bytes(device);
  const double budget = options.three_phonon.memory_budget_bytes > 0
                            ? static_cast<double>(options.three_phonon.memory_budget_bytes)
                            : 0.8 * static_cast<double>(free_memory_bytes(device));
  const bool again = iterated && static_cast<double>(processes) * sizeof(Process3) > budget;
  plan["processes_3ph_passes_per_iteration"] = again ? 1 : 0;
  if (again)
    run.warnings.push_back(
        "the list of some " + std::to_string(processes) + " three-phonon processes takes " +
        std::to_string(processes * static_cast<std::int64_t>(sizeof(Process3)) >> 20) +
        " MiB, more than 'memory_budget_mib' or the free memory allow (" +
        std::to_string(static_cast<std::int64_t>(budget) >> 20) +
        " MiB): every iteration computes all of them again");
  plan["seconds_3ph_estimate"] = measure_3ph(options.transport.temperatures_k, run.modes,
                                             std::move(problem), device, iterated && !again);
}

}  // namespace

nlohmann::json lint(const LatticeModel& model, const CaseOptions& options, ConductivityRun& run,
                    const Device& device) {
  const Symmetry& symmetry = model.symmetry;
  nlohmann::json plan{{"mesh", {symmetry.mesh.n[0], symmetry.mesh.n[1], symmetry.mesh.n[2]}},
                      {"irreducible_points", symmetry.n_irreducible()},
                      {"modes", run.modes.n_modes()},
                      {"space_group", symmetry.space_group},
                      {"symmetry_operations", symmetry.operations.size()},
                      {"temperatures_k", options.transport.temperatures_k},
                      {"third_order_blocks", model.third_order.n_blocks()},
                      {"device", device.name()}};
  nlohmann::json checks = check_case(model, options, run);
  if (options.only_harmonic) return {{"checks", checks}, {"plan", plan}};
  ThreePhononProblem problem = make_three_phonon_problem(model.crystal, model.third_order, symmetry,
                                                         run.modes, options.three_phonon);
  const Transport transport{model.crystal, symmetry, run.modes, options.transport};
  const std::int64_t processes = check_broadening(transport, options.checks, run, problem, checks);
  plan_3ph(options, processes, std::move(problem), run, device, plan);
  if (model.fourth_order) plan_4ph(model, options, run, device, plan);
  return {{"checks", checks}, {"plan", plan}};
}

}  // namespace quasi::thermal
