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

/// Identifies the sums of a sample in a checkpoint.
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

/// Sums of samples, shared out among the devices of a team and kept in a checkpoint.
class SampleSums4ph {
 public:
  SampleSums4ph(const Problem4ph& problem, const Team4ph& team, Checkpoint& checkpoint,
                Progress& progress)
      : problem_(problem), team_(team), checkpoint_(checkpoint), progress_(progress) {}

  /// Sums over uniform draws, [n_rows][3][UniformLayout4ph]: blocks of draws are added in order.
  /// @param elements  false: phase spaces only
  std::vector<double> uniform(std::uint64_t seed, std::int64_t draws, bool elements) {
    const std::int64_t n_blocks = (draws + kDrawsPerBlock - 1) / kDrawsPerBlock;
    RunningSums sums(checkpoint_, "4ph uniform draws",
                     digest_of(problem_, seed, static_cast<double>(draws), elements),
                     n_values(UniformLayout4ph{n_temperatures()}.size()), n_blocks);
    share_tasks(
        {.ranks = *team_.ranks,
         .n_own = team_.kernels.size(),
         .first = sums.finished(),
         .end = n_blocks,
         .progress = progress_},
        [](std::size_t, std::int64_t) {},
        [&](std::size_t device, std::int64_t block) {
          return team_.kernels[device]->sample_uniform(
              seed, block * kDrawsPerBlock, std::min(draws, (block + 1) * kDrawsPerBlock),
              elements);
        },
        [&](std::int64_t done, const std::vector<double>& piece) {
          sums.add(piece);
          progress_.report("sampling 4ph", done + 1, n_blocks);
        });
    team_.ranks->broadcast(sums.total(), 0);
    return std::move(sums.total());
  }

  /// Sums over all processes, some of which are drawn, [n_rows][3][ThinnedLayout4ph].
  /// @param phase  name of the step in reports of progress
  std::vector<double> thinned(const Thinning4ph& thinning, const char* phase) {
    // Weights do not depend on the seed.
    const bool elements = thinning.draws > 0.0;
    ProblemLoading4ph loading(team_, problem_);
    const TilePlan4ph plan = plan_tiles_4ph(problem_);
    RunningSums sums(checkpoint_, "4ph draws by weight, tiles of stars by work",
                     digest_of(problem_, elements ? thinning.seed : 0, thinning.draws, elements),
                     n_values(ThinnedLayout4ph{n_temperatures()}.size()), plan.size());
    on_every_tile(
        {loading, plan, sums.finished()}, team_, progress_,
        [](ScatteringKernels4ph&, std::int32_t, std::int32_t) {},
        [&](ScatteringKernels4ph& kernel, std::int32_t first, std::int32_t last) {
          return kernel.thinned_sums(thinning, first, last);
        },
        [&](std::int64_t place, const std::vector<double>& piece) {
          sums.add(piece);
          progress_.report(phase, plan.progress(place + 1), TilePlan4ph::kProgressUnits);
        });
    team_.ranks->broadcast(sums.total(), 0);
    return std::move(sums.total());
  }

 private:
  int n_temperatures() const { return static_cast<int>(problem_.temperatures_k.size()); }
  std::size_t n_values(int layout_size) const {
    return problem_.point.size() * static_cast<std::size_t>(problem_.n_branches) * kChannels4ph *
           static_cast<std::size_t>(layout_size);
  }

  const Problem4ph& problem_;
  const Team4ph& team_;
  Checkpoint& checkpoint_;
  Progress& progress_;
};

/// Rates, phase spaces and counts from the sums of processes drawn by weight.
/// @param sums        of SampleSums4ph::thinned
/// @param weight_sum  [n_rows][3][n_temperatures] Σu over all processes
Rates4ph rates_of_thinned_sums(const Problem4ph& problem, const PhysicalConstants& constants,
                               const std::vector<double>& sums,
                               const std::vector<double>& weight_sum) {
  Rates4ph rates = empty_rates(problem);
  const int n_t = rates.n_temperatures;
  const ThinnedLayout4ph layout{n_t};
  const double nq = static_cast<double>(problem.mesh.size());
  const double nb = problem.n_branches;
  const double rate_constant = constants.rate_4ph / (nq * nq);
  for (std::int64_t row = 0; row < rates.n_rows; ++row)
    for (int c = 0; c < kChannels4ph; ++c) {
      const auto channel = static_cast<Channel4ph>(c);
      const double* s = &sums[static_cast<std::size_t>((row * kChannels4ph + c) * layout.size())];
      for (int t = 0; t < n_t; ++t) {
        const auto at = static_cast<std::size_t>(rates.at(channel, t, row));
        rates.weighted_phase_space[at] = s[layout.weighted_phase_space(t)] / (nq * nq);
        const SampledSum sum = ratio_estimate(
            layout, s, t, weight_sum[static_cast<std::size_t>((row * kChannels4ph + c) * n_t + t)]);
        rates.normal_per_ps[at] = rate_constant * sum.normal;
        rates.umklapp_per_ps[at] = rate_constant * (sum.value - sum.normal);
        rates.error_per_ps[at] = rate_constant * sum.error;
      }
      const auto at = static_cast<std::size_t>(rates.at(channel, row));
      rates.phase_space[at] = s[layout.phase_space()] / (nq * nq * nq * nb * nb * nb * nb);
      rates.processes[at] = s[layout.six_count()] / 6.0;
      rates.evaluations += s[layout.evaluations()];
    }
  return rates;
}

}  // namespace

Rates4ph uniform_sample_4ph(const Problem4ph& problem, const PhysicalConstants& constants,
                            const UniformDraws4ph& draws, const Team4ph& team, Progress& progress,
                            const CheckpointRule& checkpoint_rule) {
  Checkpoint checkpoint = open_checkpoint(checkpoint_rule, progress);
  for (ScatteringKernels4ph* kernel : team.kernels) kernel->load(problem);
  SampleSums4ph sample(problem, team, checkpoint, progress);
  Rates4ph rates = empty_rates(problem);
  const UniformLayout4ph layout{rates.n_temperatures};
  const double nq = static_cast<double>(problem.mesh.size());
  const double nb = problem.n_branches;
  const double box = nq * nq * nb * nb * nb;
  const double rate_constant = constants.rate_4ph / (nq * nq);
  std::vector<double> sums;
  if (draws.rates > 0) sums = sample.uniform(draws.seed, draws.rates, true);
  const std::vector<double> phase_sums =
      draws.phase_spaces == draws.rates ? sums
                                        : sample.uniform(draws.seed, draws.phase_spaces, false);
  for (std::int64_t row = 0; row < rates.n_rows; ++row)
    for (int c = 0; c < kChannels4ph; ++c) {
      const auto channel = static_cast<Channel4ph>(c);
      const auto base = static_cast<std::size_t>((row * kChannels4ph + c) * layout.size());
      for (int t = 0; t < rates.n_temperatures; ++t) {
        const auto at = static_cast<std::size_t>(rates.at(channel, t, row));
        rates.weighted_phase_space[at] = box * phase_sums[base + layout.weighted_phase_space(t)] /
                                         static_cast<double>(draws.phase_spaces) / (nq * nq);
        if (draws.rates == 0) continue;
        const auto n = static_cast<double>(draws.rates);
        const SampledSum sum = uniform_estimate(layout, &sums[base], t, n, box);
        rates.normal_per_ps[at] = rate_constant * sum.normal;
        rates.umklapp_per_ps[at] = rate_constant * (sum.value - sum.normal);
        rates.error_per_ps[at] = rate_constant * sum.error;
      }
      const auto at = static_cast<std::size_t>(rates.at(channel, row));
      const double scale = box / static_cast<double>(draws.phase_spaces);
      rates.phase_space[at] =
          scale * phase_sums[base + layout.phase_space()] / (nq * nq * nq * nb * nb * nb * nb);
      rates.processes[at] = scale * phase_sums[base + layout.six_count()] / 6.0;
      if (draws.rates > 0) rates.evaluations += sums[base + layout.evaluations()];
    }
  return rates;
}

Rates4ph weighted_sample_4ph(const Problem4ph& problem, const PhysicalConstants& constants,
                             const WeightedDraws4ph& draws, const Team4ph& team, Progress& progress,
                             const CheckpointRule& checkpoint_rule) {
  Checkpoint checkpoint = open_checkpoint(checkpoint_rule, progress);
  SampleSums4ph sample(problem, team, checkpoint, progress);
  const int n_t = static_cast<int>(problem.temperatures_k.size());
  const ThinnedLayout4ph layout{n_t};
  const std::vector<double> weights = sample.thinned({.seed = draws.seed}, "phase space 4ph");
  std::vector<double> weight_sum;
  double largest_count = 0.0;  // of the processes of a row and channel
  for (std::size_t base = 0; base < weights.size();
       base += static_cast<std::size_t>(layout.size())) {
    for (int t = 0; t < n_t; ++t) weight_sum.push_back(weights[base + layout.weight(t)]);
    largest_count = std::max(largest_count, weights[base + layout.six_count()] / 6.0);
  }
  for (auto n = static_cast<double>(draws.first);; n *= 2.0) {
    const std::vector<double> sums = sample.thinned(
        {.seed = draws.seed, .draws = n, .weight_sum = weight_sum.data()}, "sampling 4ph");
    Rates4ph rates = rates_of_thinned_sums(problem, constants, sums, weight_sum);
    progress.metric("evaluations_4ph", rates.evaluations);
    if (draws.good_enough(rates) || n > 1e3 * largest_count) return rates;
  }
}

}  // namespace quasi::thermal
