#include "workers/gw/solver/calculation/cost/cost_estimate.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "workers/gw/model/memory_limits.hpp"
#include "workers/gw/solver/calculation/cost/cost_samples.hpp"
#include "workers/gw/solver/screening/polarizability/polarizability.hpp"

namespace quasi::gw {
namespace {

/// Lists the work that error bars add to the sums of a job.
struct ErrorBarCounts {
  double states = 0.0;    ///< outer states at all q
  double matrices = 0.0;  ///< matrices that a block inverts
  double pairs = 0.0;     ///< pairs of χ with windows at their nodes
  double devices = 1.0;
};
/// Estimates the seconds of the error bars of pseudobands, but for a sum that Σ has anyway.
double error_bar_seconds(const Plan& plan, const UnitCosts& cost, const ErrorBarCounts& counts) {
  const ErrorBarWork& work = plan.error_bars;
  if (work.blocks == 0) return 0.0;
  const double changes = work.blocks + 1, bands = plan.sigma.bands,
               of_screening =
                   (changes * counts.matrices * cost.inversion_s + counts.pairs * cost.chi_pair_s) /
                   counts.devices;
  if (sums_once(plan)) return of_screening;
  const double of_band = work.first_order
                             ? cost.pair_s + cost.response_s
                             : changes * (cost.pair_s + cost.pole_energy_s + cost.closed_form_s);
  return of_screening + counts.states * bands * of_band / counts.devices;
}

/// Estimates the seconds in which every device takes the bands of χ at one q, and the matrix
/// elements of k·p at q → 0. With fewer k-points than portions each device takes all bands.
double seconds_of_states(const MeanField& field, const Vec3& q, const EpsilonOptions& options,
                         const UnitCosts& cost, double devices) {
  const double n_k = static_cast<double>(polarizability_k_points(field, q, options)),
               sharing = n_k < static_cast<double>(kChiPortions) ? 1.0 : devices;
  const double velocity = is_small(field, q) ? n_k * cost.velocity_s / devices : 0.0;
  return n_k * options.bands * cost.load_s * field.n_spins() / sharing + velocity;
}

/// Returns how often pairs of χ are transformed again because a device sums some slices at a time.
double further_passes(const EpsilonOptions& options) {
  return options.column_slices == 0
             ? 0.0
             : std::ceil(1.0 * options.column_slices / options.slices_at_once) - 1.0;
}

}  // namespace

std::map<std::string, double> estimate_seconds(const MeanField& field, DeviceTeam& team,
                                               int samples, Plan* plan) {
  StepTimes times;
  const UnitCosts cost = CostSamples(field, *plan, team.first()).measure(times);
  const SamplingWork sampling = sampling_work(field, plan->sigma, samples, team.first());
  const SigmaOptions& s = plan->sigma;
  const auto devices = static_cast<double>(team.size());
  plan->epsilon_seconds = plan->sigma_seconds = 0.0;
  const auto n_other = static_cast<double>(plan->epsilon.frequencies_ry.size()) - 1.0;
  // Between the vectors of a subspace the frequencies cost n_b² and not n², and a projection.
  const double n_g = field.crystal().volume_bohr3 * std::pow(plan->epsilon.epsilon_cutoff_ry, 1.5) /
                     (6.0 * kPi * kPi);
  const auto cost_between = [&](double vectors) {
    return vectors > 0.0 && vectors < n_g ? std::pow(vectors / n_g, 2) : 1.0;
  };
  const double of_epsilon = cost_between(static_cast<double>(plan->subspace_vectors));
  ErrorBarCounts bars{.devices = devices};
  if (!plan->stored)
    for (const Vec3& q : screening_points(field)) {
      const auto pairs = static_cast<double>(polarizability_pairs(field, q, plan->epsilon));
      // The first order of Σ takes one block to the nodes of the windows (bands_at_nodes()).
      const ErrorBarWork& of_bars = plan->error_bars;
      bars.pairs += pairs * of_bars.random_bands /
                    (std::max(1, plan->epsilon.bands - field.n_occupied) *
                     (of_bars.first_order ? static_cast<double>(of_bars.blocks) : 1.0));
      bars.matrices += 1.0 + n_other;
      const double each =
          n_other > 0.0
              ? cost.pair_s + cost.chi_pair_s + n_other * of_epsilon * cost.frequency_pair_s
              : cost.chi_pair_s + further_passes(plan->epsilon) * cost.pair_s;
      // Every sample of q → 0 has the pairs of q₀.
      const double repeats = q == field.q0 ? 1.0 + samples : 1.0;
      plan->epsilon_seconds +=
          repeats * ((pairs * each + (1.0 + n_other) * cost.inversion_s) / devices +
                     seconds_of_states(field, q, plan->epsilon, cost, devices));
    }
  double points = 0.0;  // (k, q) of Σ
  for (const int ik : s.kpoints)
    for (const auto& star :
         q_points_by_star(field, field.waves.k[static_cast<std::size_t>(ik)], s.reduce_q))
      points += static_cast<double>(star.second.size());
  points = (points + sampling.sigma_points * devices) * field.n_spins();
  const double n_l = s.band_max - s.band_min + 1, pairs = points * n_l * s.bands;
  const bool frequencies = uses_frequencies(s.method);
  double forms = s.exact_static_ch || s.method == SigmaMethod::kCohsex ? 1.0 : 0.0;
  if (frequencies) {
    const auto n_f = static_cast<double>(s.contour.imaginary_ry.size() + s.contour.real_ry.size());
    const double share = s.subspace.wanted() ? cost_between(s.subspace.vectors) : of_epsilon;
    forms += share < 1.0 ? 2.0 + std::sqrt(share) + n_f * share : n_f;
  }
  const auto energies = static_cast<double>(s.offsets_ry.size());
  // Slices sum the closed sum like one more energy. Each of them makes all products.
  const bool sliced = s.column_slices > 0;
  const double closed = !sliced             ? cost.closed_form_s
                        : s.closed_sum_x_ry ? cost.pole_energy_s
                                            : 0.0,
               of_pair = sums_once(*plan)
                             ? cost.response_s
                             : energies * cost.pole_energy_s + forms * cost.form_s + closed,
               products = sliced ? s.column_slices * cost.pair_s : cost.pair_s;
  plan->sigma_seconds = (pairs * (products + of_pair) + points * s.bands * cost.load_s +
                         points * n_l * field.n_occupied * cost.bare_pair_s) /
                        devices;
  // One device makes the states and sums of the samples.
  plan->epsilon_seconds += sampling.epsilon_states * sampling.state_s;
  plan->sigma_seconds += sampling.sigma_states * sampling.state_s;
  bars.states = points * n_l;
  plan->error_bar_seconds = error_bar_seconds(*plan, cost, bars);
  return times.seconds();
}

std::string cost_line(const Plan& plan) {
  constexpr double kGib = 1073741824.0;
  char line[240], sigma[32] = "", bars[48] = "";
  if (plan.sigma_seconds > 0.0)
    std::snprintf(sigma, sizeof sigma, "Σ %.3g s, ", plan.sigma_seconds);
  if (plan.error_bar_seconds > 0.0)
    std::snprintf(bars, sizeof bars, "error bars %.3g s, ", plan.error_bar_seconds);
  std::snprintf(line, sizeof line,
                "estimate: ε %.3g s, %s%s%.2f GiB of device memory and %.2f GiB of host memory",
                plan.epsilon_seconds, sigma, bars, static_cast<double>(plan.memory_bytes) / kGib,
                static_cast<double>(plan.host_bytes) / kGib);
  return line;
}

}  // namespace quasi::gw
