#include "workers/thermal/solver/four_phonon/sampling_4ph.hpp"

#include <algorithm>
#include <cmath>

#include "workers/thermal/solver/four_phonon/share_tiles.hpp"
#include "workers/thermal/solver/transport/sample_estimates.hpp"

namespace quasi::thermal {

namespace {

constexpr std::int64_t kDrawsPerBlock = 16384;

Rates4ph empty_rates(const Problem4ph& problem) {
  const auto n_t = static_cast<int>(problem.temperatures_k.size());
  Rates4ph rates{.n_rows = static_cast<std::int64_t>(problem.point.size()) * problem.n_branches,
                 .n_temperatures = n_t};
  const auto per_temperature = static_cast<std::size_t>(kChannels4ph * n_t * rates.n_rows);
  for (auto* values : {&rates.normal_per_ps, &rates.umklapp_per_ps, &rates.weighted_phase_space,
                       &rates.error_per_ps})
    values->assign(per_temperature, 0.0);
  for (auto* values : {&rates.phase_space, &rates.processes})
    values->assign(static_cast<std::size_t>(kChannels4ph * rates.n_rows), 0.0);
  return rates;
}

/// What names a sample's sums in a checkpoint beside the problem.
std::uint64_t digest_of(const Problem4ph& problem, std::uint64_t seed, double draws,
                        bool elements) {
  ProblemDigest digest;
  const std::uint64_t of_problem = thermal::digest_of(problem);
  digest.add(&of_problem, sizeof of_problem);
  digest.add(&seed, sizeof seed);
  digest.add(draws);
  digest.add(elements ? 1.0 : 0.0);
  return digest.value();
}

/// Σ over draws of every row and channel, in blocks that the devices take by turns and that are
/// added in order.
std::vector<double> uniform_sums(const Problem4ph& problem, std::uint64_t seed, std::int64_t draws,
                                 bool elements, const Team4ph& team, Checkpoint& checkpoint,
                                 Progress& progress) {
  const std::int64_t n_blocks = (draws + kDrawsPerBlock - 1) / kDrawsPerBlock;
  const std::size_t n_values =
      problem.point.size() * static_cast<std::size_t>(problem.n_branches) * kChannels4ph *
      static_cast<std::size_t>(
          UniformLayout4ph{static_cast<int>(problem.temperatures_k.size())}.size());
  RunningSums sums(checkpoint, "4ph uniform draws",
                   digest_of(problem, seed, static_cast<double>(draws), elements), n_values,
                   n_blocks);
  share_tiles(
      team, sums.finished(), n_blocks, progress,
      [](ScatteringKernels4ph&, std::size_t, std::int64_t) {},
      [&](ScatteringKernels4ph& kernels, std::size_t, std::int64_t block) {
        return kernels.sample_uniform(seed, block * kDrawsPerBlock,
                                      std::min(draws, (block + 1) * kDrawsPerBlock), elements);
      },
      [&](std::int64_t done, const std::vector<double>& piece) {
        sums.add(piece);
        progress.report("sampling 4ph", done + 1, n_blocks);
      });
  team.ranks->broadcast(sums.total(), 0);
  return std::move(sums.total());
}

std::vector<double> thinned_total(const Problem4ph& problem, const Thinning4ph& thinning,
                                  const Team4ph& team, const char* phase, Checkpoint& checkpoint,
                                  Progress& progress) {
  const std::size_t n_values =
      problem.point.size() * static_cast<std::size_t>(problem.n_branches) * kChannels4ph *
      static_cast<std::size_t>(
          ThinnedLayout4ph{static_cast<int>(problem.temperatures_k.size())}.size());
  // Weights do not depend on the seed.
  const bool elements = thinning.draws > 0.0;
  const TilePlan4ph plan = plan_tiles_4ph(problem);
  RunningSums sums(checkpoint, "4ph draws by weight, tiles of stars by work",
                   digest_of(problem, elements ? thinning.seed : 0, thinning.draws, elements),
                   n_values, plan.size());
  on_every_tile(
      problem, plan, team, sums.finished(), progress,
      [](ScatteringKernels4ph&, std::int32_t, std::int32_t) {},
      [&](ScatteringKernels4ph& kernel, std::int32_t first, std::int32_t last) {
        return kernel.thinned_sums(thinning, first, last);
      },
      [&](std::int64_t place, const std::vector<double>& piece) {
        sums.add(piece);
        progress.report(phase, plan.progress(place + 1), TilePlan4ph::kProgressUnits);
      });
  team.ranks->broadcast(sums.total(), 0);
  return std::move(sums.total());
}

}  // namespace

Rates4ph uniform_sample_4ph(const Problem4ph& problem, const PhysicalConstants& constants,
                            std::uint64_t seed, std::int64_t draws, std::int64_t phase_space_draws,
                            const Team4ph& team, Progress& progress,
                            const CheckpointRule& checkpoint_rule) {
  Checkpoint checkpoint = open_checkpoint(checkpoint_rule, progress);
  for (ScatteringKernels4ph* kernel : team.kernels) kernel->load(problem);
  Rates4ph rates = empty_rates(problem);
  const UniformLayout4ph layout{rates.n_temperatures};
  const double nq = static_cast<double>(problem.mesh.size());
  const double nb = problem.n_branches;
  const double box = nq * nq * nb * nb * nb;
  const double rate_constant = constants.rate_4ph / (nq * nq);
  std::vector<double> sums;
  if (draws > 0) sums = uniform_sums(problem, seed, draws, true, team, checkpoint, progress);
  const std::vector<double> phase_sums =
      phase_space_draws == draws
          ? sums
          : uniform_sums(problem, seed, phase_space_draws, false, team, checkpoint, progress);
  for (std::int64_t row = 0; row < rates.n_rows; ++row)
    for (int c = 0; c < kChannels4ph; ++c) {
      const auto channel = static_cast<Channel4ph>(c);
      const auto base = static_cast<std::size_t>((row * kChannels4ph + c) * layout.size());
      for (int t = 0; t < rates.n_temperatures; ++t) {
        const auto at = static_cast<std::size_t>(rates.at(channel, t, row));
        rates.weighted_phase_space[at] = box * phase_sums[base + layout.weighted_phase_space(t)] /
                                         static_cast<double>(phase_space_draws) / (nq * nq);
        if (draws == 0) continue;
        const auto n = static_cast<double>(draws);
        const SampledSum sum = uniform_estimate(layout, &sums[base], t, n, box);
        rates.normal_per_ps[at] = rate_constant * sum.normal;
        rates.umklapp_per_ps[at] = rate_constant * (sum.value - sum.normal);
        rates.error_per_ps[at] = rate_constant * sum.error;
      }
      const auto at = static_cast<std::size_t>(rates.at(channel, row));
      const double scale = box / static_cast<double>(phase_space_draws);
      rates.phase_space[at] =
          scale * phase_sums[base + layout.phase_space()] / (nq * nq * nq * nb * nb * nb * nb);
      rates.processes[at] = scale * phase_sums[base + layout.six_count()] / 6.0;
      if (draws > 0) rates.evaluations += sums[base + layout.evaluations()];
    }
  return rates;
}

Rates4ph weighted_sample_4ph(const Problem4ph& problem, const PhysicalConstants& constants,
                             std::uint64_t seed, std::int64_t draws,
                             const std::function<bool(const Rates4ph&)>& good_enough,
                             const Team4ph& team, Progress& progress,
                             const CheckpointRule& checkpoint_rule) {
  Checkpoint checkpoint = open_checkpoint(checkpoint_rule, progress);
  const int n_t = static_cast<int>(problem.temperatures_k.size());
  const ThinnedLayout4ph layout{n_t};
  const double nq = static_cast<double>(problem.mesh.size());
  const double nb = problem.n_branches;
  const double rate_constant = constants.rate_4ph / (nq * nq);
  const std::vector<double> weights =
      thinned_total(problem, {.seed = seed}, team, "phase space 4ph", checkpoint, progress);
  std::vector<double> weight_sum;
  double most = 0.0;  // processes of a row and channel
  for (std::size_t base = 0; base < weights.size();
       base += static_cast<std::size_t>(layout.size())) {
    for (int t = 0; t < n_t; ++t) weight_sum.push_back(weights[base + layout.weight(t)]);
    most = std::max(most, weights[base + layout.six_count()] / 6.0);
  }
  for (auto n = static_cast<double>(draws);; n *= 2.0) {
    const std::vector<double> sums =
        thinned_total(problem, {.seed = seed, .draws = n, .weight_sum = weight_sum.data()}, team,
                      "sampling 4ph", checkpoint, progress);
    Rates4ph rates = empty_rates(problem);
    double all = 0.0;
    for (std::int64_t row = 0; row < rates.n_rows; ++row)
      for (int c = 0; c < kChannels4ph; ++c) {
        const auto channel = static_cast<Channel4ph>(c);
        const double* s = &sums[static_cast<std::size_t>((row * kChannels4ph + c) * layout.size())];
        for (int t = 0; t < n_t; ++t) {
          const auto at = static_cast<std::size_t>(rates.at(channel, t, row));
          rates.weighted_phase_space[at] = s[layout.weighted_phase_space(t)] / (nq * nq);
          const SampledSum sum = ratio_estimate(
              layout, s, t,
              weight_sum[static_cast<std::size_t>((row * kChannels4ph + c) * n_t + t)]);
          rates.normal_per_ps[at] = rate_constant * sum.normal;
          rates.umklapp_per_ps[at] = rate_constant * (sum.value - sum.normal);
          rates.error_per_ps[at] = rate_constant * sum.error;
        }
        const auto at = static_cast<std::size_t>(rates.at(channel, row));
        rates.phase_space[at] = s[layout.phase_space()] / (nq * nq * nq * nb * nb * nb * nb);
        rates.processes[at] = s[layout.six_count()] / 6.0;
        rates.evaluations += s[layout.evaluations()];
        all += s[layout.evaluations()];
      }
    progress.metric("evaluations_4ph", all);
    if (good_enough(rates) || n > 1e3 * most) return rates;
  }
}

}  // namespace quasi::thermal
