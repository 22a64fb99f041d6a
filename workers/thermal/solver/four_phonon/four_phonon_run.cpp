#include "workers/thermal/solver/four_phonon/four_phonon_run.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

#include "workers/backend/error.hpp"
#include "workers/thermal/solver/four_phonon/four_phonon_start.hpp"
#include "workers/thermal/solver/four_phonon/sampling_4ph.hpp"
#include "workers/thermal/solver/three_phonon/scattering.hpp"
#include "workers/thermal/solver/transport/kappa_error.hpp"

namespace quasi::thermal {
namespace {

/// Standard error of κ over κ that follows from the errors of sampled four-phonon rates.
double relative_kappa_error(const Transport& transport, const ConductivityRun& run,
                            const Rates4ph& rates, std::size_t t) {
  return relative_kappa_error(
      transport, run, t,
      [&](std::int64_t row) { return rates.total_per_ps(static_cast<int>(t), row); },
      [&](std::int64_t row) { return rates.total_error_per_ps(static_cast<int>(t), row); });
}

/// Computes the rates of a run: by sampling, or from all processes.
class RateStep4ph {
 public:
  RateStep4ph(const Transport& transport, const ConductivityRun& run, FourPhononRun& parts,
              const Team4ph& team, const CheckpointRule& checkpoint_rule, Progress& progress)
      : transport_(transport),
        run_(run),
        problem_(parts.problem),
        options_(parts.options),
        ready_(parts.ready),
        team_(team),
        checkpoint_rule_(checkpoint_rule),
        progress_(progress) {}

  /// Rates of a sample that reaches the target of the options.
  Rates4ph sampled() const {
    constexpr std::int64_t kFirstDraws = 32;  // by weight, where only an error is asked for
    const SamplingOptions& sampling = options_.sampling;
    const auto good_enough = [this](const Rates4ph& rates) { return reaches_target(rates); };
    if (sampling.estimator == Sampling::kByWeight)
      return averaged(weighted_sample_4ph(
          problem_, options_.constants,
          {sampling.seed, sampling.draws > 0 ? sampling.draws : kFirstDraws, good_enough}, team_,
          progress_, checkpoint_rule_));
    for (std::int64_t draws = sampling.draws > 0 ? sampling.draws : kFirstUniformDraws4ph;;
         draws *= 2) {
      const std::int64_t phase_spaces =
          sampling.phase_space_draws > 0 ? sampling.phase_space_draws : draws;
      Rates4ph rates = uniform({sampling.seed, draws, phase_spaces});
      if (reaches_target(rates)) return averaged(std::move(rates));
      if (draws > (std::int64_t{1} << 40))
        throw NotConverged(
            "uniform sampling of four phonons does not reach 'target_kappa_error' = " +
            std::to_string(sampling.target_kappa_error) + "; use sampling = by-weight");
    }
  }

  /// Rates from all processes. Phase spaces are estimates where the options give their number of
  /// draws, a key of FourPhonon.
  /// @param errors  set on the leading rank where the options ask for mixed precision
  Rates4ph summed(ScatteringKernels4ph& kernels, std::optional<SampledErrors4ph>& errors) {
    if (ready_ == nullptr) ready_ = std::make_unique<ReadySums4ph>(team_, problem_);
    Rates4ph rates = scattering_rates_4ph(problem_, options_.constants, *ready_, team_, progress_,
                                          checkpoint_rule_);
    ready_.reset();
    if (options_.precision == Precision::kMixed && team_.ranks->leads())
      errors = sample_precision_4ph(options_, run_.modes, problem_, kernels);
    if (options_.sampling.phase_space_draws > 0) {
      Rates4ph drawn = uniform({options_.sampling.seed, 0, options_.sampling.phase_space_draws});
      rates.phase_space = std::move(drawn.phase_space);
      rates.weighted_phase_space = std::move(drawn.weighted_phase_space);
      rates.processes = std::move(drawn.processes);
    }
    return averaged(std::move(rates));
  }

 private:
  Rates4ph averaged(Rates4ph rates) const {
    if (options_.average_degenerate)
      average_degenerate_4ph(run_.modes, transport_.symmetry.irreducible, rates);
    return rates;
  }
  Rates4ph uniform(const UniformDraws4ph& draws) const {
    return uniform_sample_4ph(problem_, options_.constants, draws, team_, progress_,
                              checkpoint_rule_);
  }
  bool reaches_target(const Rates4ph& rates) const {
    double worst = 0.0;
    for (std::size_t t = 0; t < options_.temperatures_k.size(); ++t)
      worst = std::max(worst, relative_kappa_error(transport_, run_, averaged(rates), t));
    progress_.metric("kappa_relative_error", worst);
    return !(options_.sampling.target_kappa_error > 0.0) ||
           worst <= options_.sampling.target_of_order;
  }

  const Transport& transport_;
  const ConductivityRun& run_;
  const Problem4ph& problem_;
  const FourPhononOptions& options_;
  std::unique_ptr<ReadySums4ph>& ready_;
  const Team4ph& team_;
  const CheckpointRule& checkpoint_rule_;
  Progress& progress_;
};

/// Total rates at every temperature, [n_temperatures][n_rows].
std::vector<double> finite_total_rates(const Rates4ph& rates) {
  std::vector<double> total;
  for (int t = 0; t < rates.n_temperatures; ++t)
    for (std::int64_t row = 0; row < rates.n_rows; ++row) {
      total.push_back(rates.total_per_ps(t, row));
      if (!std::isfinite(total.back()))
        throw InvalidInput("four-phonon scattering: the rate of row " + std::to_string(row) +
                           " at temperature number " + std::to_string(t) +
                           " is not finite; check the numbers and the units of the fourth-order "
                           "force constants");
    }
  return total;
}

/// Lets the BTE of a run apply the collision operator of four phonons.
void add_collision(const Transport& transport, const Team4ph& team, Progress& progress,
                   FourPhononRun& result) {
  for (ScatteringKernels4ph* kernel : team.kernels) kernel->load(result.problem);
  const bool symmetric = result.options.has_symmetric_operator();
  result.collision = std::make_unique<Collision4ph>(result.problem, result.options.constants, team,
                                                    result.rates, symmetric, progress);
  Collision4ph* collision = result.collision.get();
  result.further.symmetric = symmetric;
  result.further.in_scattering = [collision](std::size_t t, const std::vector<double>& f) {
    return collision->in_scattering(t, f);
  };
  if (!symmetric) return;
  const Modes* modes = &transport.modes;
  const Symmetry* symmetry = &transport.symmetry;
  const bool average = result.options.average_degenerate;
  result.further.diagonal_per_ps = [collision, modes, symmetry, average](std::size_t t) {
    std::vector<double> diagonal = collision->out_scattering(t);
    if (average) average_over_subspaces(*modes, symmetry->irreducible, 1, diagonal.data());
    return diagonal;
  };
}

}  // namespace

std::unique_ptr<FourPhononRun> run_four_phonon(const Transport& transport, FourPhononStart& begun,
                                               const FourPhononSite& site, ConductivityRun& run,
                                               Progress& progress) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  std::unique_ptr<FourPhononRun> result = begun.finish();
  const FourPhononOptions& options = result->options;
  const Team4ph team(pointers_to(result->kernels), site.ranks);
  if (site.ranks.size() > 1)
    site.ranks.require_same(digest_of(result->problem), "the phonon modes");
  result->rules = result->problem.rules;
  const CheckpointRule rule{
      site.ranks.leads() ? site.checkpoint_directory : std::filesystem::path{},
      options.checkpoint_interval_s};
  RateStep4ph step(transport, run, *result, team, rule, progress);
  if (options.sampling.enabled) {
    result->rates = step.sampled();
    for (std::size_t t = 0; t < options.temperatures_k.size(); ++t)
      result->kappa_relative_error.push_back(
          relative_kappa_error(transport, run, result->rates, t));
  } else {
    result->rates = step.summed(*result->kernels.front(), result->precision_errors);
  }
  result->further.rate_per_ps = finite_total_rates(result->rates);
  if (options.iteration) add_collision(transport, team, progress, *result);
  run.seconds["scattering_4ph"] += std::chrono::duration<double>(Clock::now() - start).count();
  return result;
}

std::unique_ptr<FourPhononRun> run_four_phonon(const Transport& transport,
                                               const SparseForceConstants& fourth_order,
                                               const FourPhononOptions& options,
                                               const FourPhononSite& site, ConductivityRun& run,
                                               Progress& progress) {
  FourPhononStart begun(transport, fourth_order, options, site.devices, false);
  return run_four_phonon(transport, begun, site, run, progress);
}

FurtherScattering iterated_with(const Symmetry& along, const Transport& bulk,
                                const SparseForceConstants& fourth_order,
                                const std::vector<Device>& devices,
                                const FourPhononRun& four_phonon, Progress& progress) {
  struct Parts {
    Problem4ph problem;
    Rates4ph rates;
    std::vector<std::int32_t> points;
    std::vector<std::unique_ptr<ScatteringKernels4ph>> kernels;
    std::unique_ptr<Collision4ph> collision;
  };
  const FourPhononOptions& options = four_phonon.options;
  auto parts = std::make_shared<Parts>();
  parts->problem =
      make_problem_4ph(bulk.crystal, bulk.modes, along, options, fourth_order, along.irreducible);
  parts->points = along.irreducible;
  // The size of each row is that of the row of the bulk crystal in the same star.
  Rates4ph& rates = parts->rates;
  const std::int64_t nb = bulk.modes.n_branches;
  rates.n_rows = static_cast<std::int64_t>(parts->points.size()) * nb;
  rates.n_temperatures = four_phonon.rates.n_temperatures;
  const auto size = static_cast<std::size_t>(kChannels4ph * rates.n_temperatures * rates.n_rows);
  rates.normal_per_ps.assign(size, 0.0);
  rates.umklapp_per_ps.assign(size, 0.0);
  for (int t = 0; t < rates.n_temperatures; ++t)
    for (std::int64_t row = 0; row < rates.n_rows; ++row) {
      const std::int64_t star =
          bulk.symmetry
              .star_of[static_cast<std::size_t>(parts->points[static_cast<std::size_t>(row / nb)])];
      rates.normal_per_ps[static_cast<std::size_t>(rates.at(Channel4ph::kRecombination, t, row))] =
          four_phonon.rates.total_per_ps(t, star * nb + row % nb);
    }
  parts->kernels = kernels_of(devices, options.memory_budget_bytes);
  for (const auto& kernel : parts->kernels) kernel->load(parts->problem);
  parts->collision = std::make_unique<Collision4ph>(
      parts->problem, options.constants, pointers_to(parts->kernels), rates, true, progress);
  FurtherScattering further;
  further.symmetric = true;
  further.in_scattering = [parts](std::size_t t, const std::vector<double>& f) {
    return parts->collision->in_scattering(t, f);
  };
  const Modes* modes = &bulk.modes;
  const bool average = options.average_degenerate;
  further.diagonal_per_ps = [parts, modes, average](std::size_t t) {
    std::vector<double> diagonal = parts->collision->out_scattering(t);
    if (average) average_over_subspaces(*modes, parts->points, 1, diagonal.data());
    return diagonal;
  };
  return further;
}

}  // namespace quasi::thermal
