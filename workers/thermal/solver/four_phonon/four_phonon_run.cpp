#include "workers/thermal/solver/four_phonon/four_phonon_run.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

#include "workers/backend/error.hpp"
#include "workers/thermal/solver/four_phonon/sampling_4ph.hpp"
#include "workers/thermal/solver/three_phonon/scattering.hpp"
#include "workers/thermal/solver/transport/kappa_error.hpp"

namespace quasi::thermal {

void require_supported_4ph(const Control& control) {
  if (!control.four_phonon) return;
  if (control.strategy != Strategy::kFactorised)
    throw InvalidInput(
        "'strategy' must be factorised with four_phonon = .true.; bench/published_strategies.sh "
        "compares the published strategies");
}

namespace {

/// What is not known of κ because four-phonon rates are a sample's.
double relative_kappa_error(const Deck& deck, const ConductivityRun& run, const Rates4ph& rates,
                            std::size_t t) {
  return relative_kappa_error(
      deck, run, t, [&](std::int64_t row) { return rates.total_per_ps(static_cast<int>(t), row); },
      [&](std::int64_t row) { return rates.total_error_per_ps(static_cast<int>(t), row); });
}

/// Sampled rates, averaged over degenerate sets where the control says so.
Rates4ph sampled_rates(const Deck& deck, const ConductivityRun& run, const Problem4ph& problem,
                       const Team4ph& team, const CheckpointRule& rule, Progress& progress) {
  constexpr std::int64_t kFirstDraws = 32;  // by weight, where only an error is asked for
  constexpr std::int64_t kFirstUniform = 10000;
  const Control& control = deck.control;
  const auto averaged = [&](Rates4ph rates) {
    if (control.average_degenerate)
      average_degenerate_4ph(run.modes, deck.symmetry.irreducible, rates);
    return rates;
  };
  const auto good_enough = [&](const Rates4ph& rates) {
    double worst = 0.0;
    for (std::size_t t = 0; t < control.temperatures_k.size(); ++t)
      worst = std::max(worst, relative_kappa_error(deck, run, averaged(rates), t));
    progress.metric("kappa_relative_error", worst);
    return !(control.target_kappa_error > 0.0) || worst <= control.target_of_one_order();
  };
  const auto seed = static_cast<std::uint64_t>(control.seed);
  if (control.sampling == Sampling::kByWeight)
    return averaged(weighted_sample_4ph(
        problem, control.constants(),
        {seed, control.samples_4ph > 0 ? control.samples_4ph : kFirstDraws, good_enough}, team,
        progress, rule));
  for (std::int64_t draws = control.samples_4ph > 0 ? control.samples_4ph : kFirstUniform;;
       draws *= 2) {
    const std::int64_t of_phase_space =
        control.samples_4ph_phase_space > 0 ? control.samples_4ph_phase_space : draws;
    Rates4ph rates = uniform_sample_4ph(problem, control.constants(), {seed, draws, of_phase_space},
                                        team, progress, rule);
    if (good_enough(rates)) return averaged(std::move(rates));
    if (draws > (std::int64_t{1} << 40))
      throw NotConverged("uniform sampling of four phonons does not reach 'target_kappa_error' = " +
                         std::to_string(control.target_kappa_error) + "; use sampling = by-weight");
  }
}

}  // namespace

std::unique_ptr<FourPhononRun> run_four_phonon(const Deck& deck, const std::vector<Device>& devices,
                                               Ranks& ranks, ConductivityRun& run,
                                               const std::filesystem::path& checkpoint_directory,
                                               Progress& progress) {
  require_supported_4ph(deck.control);
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const Control& control = deck.control;
  auto result = std::make_unique<FourPhononRun>();
  result->problem = make_problem_4ph(deck.crystal, run.modes, deck.symmetry, control,
                                     *deck.fourth_order, deck.symmetry.irreducible);
  std::vector<ScatteringKernels4ph*> kernels;
  for (const Device& device : devices) {
    result->kernels.push_back(make_scattering_kernels_4ph(
        device, static_cast<std::int64_t>(control.memory_budget_mib * 1048576.0)));
    kernels.push_back(result->kernels.back().get());
  }
  const Team4ph team(kernels, ranks);
  if (ranks.size() > 1) ranks.require_same(digest_of(result->problem), "the phonon modes");
  result->rules = result->problem.rules;
  result->n_blocks = deck.fourth_order->n_blocks();
  Rates4ph& rates = result->rates;
  const CheckpointRule rule{ranks.leads() ? checkpoint_directory : std::filesystem::path{},
                            control.checkpoint_interval_s};
  if (control.samples_rates_4ph()) {
    rates = sampled_rates(deck, run, result->problem, team, rule, progress);
    for (std::size_t t = 0; t < control.temperatures_k.size(); ++t)
      result->kappa_relative_error.push_back(relative_kappa_error(deck, run, rates, t));
  } else {
    rates = scattering_rates_4ph(result->problem, control.constants(), team, progress, rule);
    if (control.precision == Precision::kMixed && ranks.leads())
      result->precision_errors =
          sample_precision_4ph(deck, run.modes, result->problem, *kernels.front());
    if (control.samples_4ph_phase_space >
        0) {  // the reference's key: phase spaces from draws, rates exact
      Rates4ph drawn = uniform_sample_4ph(
          result->problem, control.constants(),
          {static_cast<std::uint64_t>(control.seed), 0, control.samples_4ph_phase_space}, team,
          progress, rule);
      rates.phase_space = std::move(drawn.phase_space);
      rates.weighted_phase_space = std::move(drawn.weighted_phase_space);
      rates.processes = std::move(drawn.processes);
    }
    if (control.average_degenerate)
      average_degenerate_4ph(run.modes, deck.symmetry.irreducible, rates);
  }
  for (int t = 0; t < rates.n_temperatures; ++t)
    for (std::int64_t row = 0; row < rates.n_rows; ++row) {
      const double rate = rates.total_per_ps(t, row);
      if (!std::isfinite(rate))
        throw InvalidInput("four-phonon scattering gave a rate that is not finite (row " +
                           std::to_string(row) +
                           "); are the fourth-order force constants finite and sane?");
      result->further.rate_per_ps.push_back(rate);
    }
  if (control.four_phonon_iteration) {
    // The symmetric form needs processes that look the same from each of their phonons.
    const bool symmetric = control.broadening == Broadening::kSymmetric && control.exact_weights &&
                           control.omega_floor_4ph_rad_ps == 0.0;
    for (ScatteringKernels4ph* kernel : kernels) kernel->load(result->problem);
    result->collision = std::make_unique<Collision4ph>(result->problem, control.constants(), team,
                                                       rates, symmetric, progress);
    Collision4ph* collision = result->collision.get();
    result->further.symmetric = symmetric;
    result->further.in_scattering = [collision](std::size_t t, const std::vector<double>& f) {
      return collision->in_scattering(t, f);
    };
    const Modes* modes = &run.modes;
    const Deck* whole = &deck;
    if (symmetric)
      result->further.diagonal_per_ps = [collision, modes, whole](std::size_t t) {
        std::vector<double> diagonal = collision->out_scattering(t);
        if (whole->control.average_degenerate)
          average_over_subspaces(*modes, whole->symmetry.irreducible, 1, diagonal.data());
        return diagonal;
      };
  }
  run.seconds["scattering_4ph"] += std::chrono::duration<double>(Clock::now() - start).count();
  return result;
}

FurtherScattering iterated_with(const Symmetry& symmetry, const Deck& deck,
                                const std::vector<Device>& devices, const ConductivityRun& run,
                                const FourPhononRun& four_phonon, Progress& progress) {
  struct Parts {
    Problem4ph problem;
    Rates4ph rates;
    std::vector<std::int32_t> points;
    std::vector<std::unique_ptr<ScatteringKernels4ph>> kernels;
    std::unique_ptr<Collision4ph> collision;
  };
  const Control& control = deck.control;
  auto parts = std::make_shared<Parts>();
  parts->problem = make_problem_4ph(deck.crystal, run.modes, symmetry, control, *deck.fourth_order,
                                    symmetry.irreducible);
  parts->points = symmetry.irreducible;
  // The size of each row, from the bulk's row of the same star.
  Rates4ph& rates = parts->rates;
  const std::int64_t nb = run.modes.n_branches;
  rates.n_rows = static_cast<std::int64_t>(parts->points.size()) * nb;
  rates.n_temperatures = four_phonon.rates.n_temperatures;
  const auto size = static_cast<std::size_t>(kChannels4ph * rates.n_temperatures * rates.n_rows);
  rates.normal_per_ps.assign(size, 0.0);
  rates.umklapp_per_ps.assign(size, 0.0);
  for (int t = 0; t < rates.n_temperatures; ++t)
    for (std::int64_t row = 0; row < rates.n_rows; ++row) {
      const std::int64_t star =
          deck.symmetry
              .star_of[static_cast<std::size_t>(parts->points[static_cast<std::size_t>(row / nb)])];
      rates.normal_per_ps[static_cast<std::size_t>(rates.at(Channel4ph::kRecombination, t, row))] =
          four_phonon.rates.total_per_ps(t, star * nb + row % nb);
    }
  std::vector<ScatteringKernels4ph*> kernels;
  for (const Device& device : devices) {
    parts->kernels.push_back(make_scattering_kernels_4ph(
        device, static_cast<std::int64_t>(control.memory_budget_mib * 1048576.0)));
    kernels.push_back(parts->kernels.back().get());
    kernels.back()->load(parts->problem);
  }
  parts->collision = std::make_unique<Collision4ph>(parts->problem, control.constants(), kernels,
                                                    rates, true, progress);
  FurtherScattering further;
  further.symmetric = true;
  further.in_scattering = [parts](std::size_t t, const std::vector<double>& f) {
    return parts->collision->in_scattering(t, f);
  };
  const Modes* modes = &run.modes;
  const bool average = control.average_degenerate;
  further.diagonal_per_ps = [parts, modes, average](std::size_t t) {
    std::vector<double> diagonal = parts->collision->out_scattering(t);
    if (average) average_over_subspaces(*modes, parts->points, 1, diagonal.data());
    return diagonal;
  };
  return further;
}

}  // namespace quasi::thermal
