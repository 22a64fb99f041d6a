#include "workers/thermal/solver/three_phonon/sampling_3ph.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "workers/backend/team/task_queue.hpp"
#include "workers/thermal/solver/transport/sample_estimates.hpp"

namespace quasi::thermal {

namespace {

constexpr std::int64_t kRowsPerTile = 24;

std::uint64_t digest_of(const ThreePhononProblem& p, const std::vector<double>& temperatures_k) {
  ProblemDigest d;
  d.add(p.mesh.n, sizeof p.mesh.n);
  for (const double value :
       {p.scale_broad, p.cut, p.delta_norm, p.omega_max_rad_ps, p.rate_constant,
        p.hbar_over_kb_k_ps, static_cast<double>(p.broadening)})
    d.add(value);
  d.add(temperatures_k);
  d.add(p.modes->omega_rad_ps);
  d.add(p.modes->eigenvector);
  d.add(p.modes->spread_rad_ps);
  d.add(p.mass_amu);
  d.add(p.rows);
  d.add(p.fc3.atom);
  d.add(p.fc3.cell);
  d.add(p.fc3.tensor);
  return d.value();
}

}  // namespace

Sampler3::Sampler3(const ThreePhononProblem& problem, std::vector<double> temperatures_k,
                   std::vector<SamplingKernels3*> kernels, std::uint64_t seed,
                   const CheckpointRule& rule, Progress& progress)
    : problem_(problem),
      temperatures_k_(std::move(temperatures_k)),
      kernels_(std::move(kernels)),
      seed_(seed),
      digest_(digest_of(problem_, temperatures_k_)),
      checkpoint_(open_checkpoint(rule, progress)),
      progress_(progress) {}

/// [n_rows][2][size], tile by tile of rows.
std::vector<double> Sampler3::sums(const char* name, double draws, bool seeded, int size,
                                   const char* phase, const Compute& compute) {
  ProblemDigest digest;
  digest.add(&digest_, sizeof digest_);
  const std::uint64_t seed = seeded ? seed_ : 0;
  digest.add(&seed, sizeof seed);
  digest.add(draws);
  const std::int64_t n_rows = problem_.n_rows();
  const std::int64_t n_tiles = (n_rows + kRowsPerTile - 1) / kRowsPerTile;
  const std::size_t n_values = static_cast<std::size_t>(n_rows * kChannels3 * size);
  RunningSums total(checkpoint_, name, digest.value(), n_values, n_tiles);
  std::atomic<bool> stop{false};
  TaskQueue queue(total.finished(), n_tiles, kernels_.size());
  on_every_device(kernels_.size(), stop, [&](std::size_t device) {
    try {
      for (std::int64_t tile = queue.take(stop); tile >= 0; tile = queue.take(stop)) {
        const std::int64_t first = tile * kRowsPerTile;
        queue.finish(tile,
                     compute(*kernels_[device], first, std::min(n_rows, first + kRowsPerTile)));
        queue.hand_over([&](std::int64_t done, const std::vector<double>& rows) {
          std::vector<double> piece(n_values, 0.0);  // a tile's rows are its own
          std::copy(rows.begin(), rows.end(),
                    piece.begin() + done * kRowsPerTile * kChannels3 * size);
          total.add(piece);
          progress_.report(phase, done + 1, n_tiles);
        });
      }
    } catch (...) {
      stop = true;
      queue.wake();
      throw;
    }
  });
  return std::move(total.total());
}

ThreePhononRates Sampler3::empty() const {
  ThreePhononRates rates;
  rates.n_temperatures = static_cast<std::int64_t>(temperatures_k_.size());
  const auto n_rows = static_cast<std::size_t>(problem_.n_rows());
  for (auto* values :
       {&rates.absorption_per_ps, &rates.emission_per_ps, &rates.normal_absorption_per_ps,
        &rates.normal_emission_per_ps, &rates.weighted_absorption_ps4, &rates.weighted_emission_ps4,
        &rates.absorption_error_per_ps, &rates.emission_error_per_ps})
    values->assign(n_rows * temperatures_k_.size(), 0.0);
  rates.phase_space_absorption_ps.assign(n_rows, 0.0);
  rates.phase_space_emission_ps.assign(n_rows, 0.0);
  return rates;
}

namespace {

/// The arrays of one channel, and the ½ of emission.
struct ChannelRates {
  std::vector<double>&rate, &normal, &error, &weighted, &phase_space;
  std::int64_t& processes;
  double factor;
};
ChannelRates of_channel(ThreePhononRates& r, int channel) {
  return channel == 0 ? ChannelRates{r.absorption_per_ps,
                                     r.normal_absorption_per_ps,
                                     r.absorption_error_per_ps,
                                     r.weighted_absorption_ps4,
                                     r.phase_space_absorption_ps,
                                     r.n_absorption,
                                     1.0}
                      : ChannelRates{r.emission_per_ps,
                                     r.normal_emission_per_ps,
                                     r.emission_error_per_ps,
                                     r.weighted_emission_ps4,
                                     r.phase_space_emission_ps,
                                     r.n_emission,
                                     0.5};
}

}  // namespace

ThreePhononRates Sampler3::uniform(std::int64_t draws, std::int64_t phase_space_draws) {
  const UniformLayout layout{static_cast<int>(temperatures_k_.size())};
  const auto drawn = [&](std::int64_t n, bool elements) {
    return sums(elements ? "3ph uniform draws" : "3ph uniform phase space", static_cast<double>(n),
                true, layout.size(), "sampling 3ph",
                [&](SamplingKernels3& kernels, std::int64_t first, std::int64_t last) {
                  return kernels.uniform(seed_, n, elements, first, last);
                });
  };
  std::vector<double> of_rates;
  if (draws > 0) of_rates = drawn(draws, true);
  const std::vector<double> of_phase_space =
      phase_space_draws == draws ? of_rates : drawn(phase_space_draws, false);
  ThreePhononRates rates = empty();
  const double nq = static_cast<double>(problem_.mesh.size());
  const double box = nq * problem_.n_branches() * problem_.n_branches();
  const double scale = box / static_cast<double>(phase_space_draws);
  const double prefactor = problem_.rate_constant / nq;
  const std::int64_t n_rows = problem_.n_rows();
  double processes[kChannels3] = {0.0, 0.0};
  for (std::int64_t row = 0; row < n_rows; ++row)
    for (int c = 0; c < kChannels3; ++c) {
      const ChannelRates out = of_channel(rates, c);
      const auto base = static_cast<std::size_t>((row * kChannels3 + c) * layout.size());
      for (int t = 0; t < layout.n_temperatures; ++t) {
        const auto at = static_cast<std::size_t>(t * n_rows + row);
        out.weighted[at] =
            out.factor * scale * of_phase_space[base + layout.weighted_phase_space(t)] / nq;
        if (draws == 0) continue;
        const SampledSum sum =
            uniform_estimate(layout, &of_rates[base], t, static_cast<double>(draws), box);
        out.rate[at] = out.factor * prefactor * sum.value;
        out.normal[at] = out.factor * prefactor * sum.normal;
        out.error[at] = out.factor * prefactor * sum.error;
      }
      out.phase_space[row] = scale * of_phase_space[base + layout.phase_space()];
      processes[c] += scale * of_phase_space[base + layout.six_count()] / 6.0;
      if (draws > 0) rates.evaluations += of_rates[base + layout.evaluations()];
    }
  for (int c = 0; c < kChannels3; ++c) of_channel(rates, c).processes = std::llround(processes[c]);
  return rates;
}

ThreePhononRates Sampler3::by_weight(
    std::int64_t draws, const std::function<bool(const ThreePhononRates&)>& good_enough) {
  const ThinnedLayout layout{static_cast<int>(temperatures_k_.size())};
  const std::int64_t n_rows = problem_.n_rows();
  const auto drawn = [&](double n, const std::vector<double>& weight_sum, const char* phase) {
    return sums("3ph draws by weight", n, n > 0.0, layout.size(), phase,
                [&](SamplingKernels3& kernels, std::int64_t first, std::int64_t last) {
                  const std::int64_t of_row = kChannels3 * layout.n_temperatures;
                  std::vector<double> of_tile;
                  if (n > 0.0)
                    of_tile.assign(weight_sum.begin() + first * of_row,
                                   weight_sum.begin() + last * of_row);
                  return kernels.thinned(seed_, n, of_tile, first, last);
                });
  };
  const std::vector<double> weights = drawn(0.0, {}, "phase space 3ph");
  std::vector<double> weight_sum;
  double most = 0.0;  // processes of a row and channel
  for (std::size_t base = 0; base < weights.size();
       base += static_cast<std::size_t>(layout.size())) {
    for (int t = 0; t < layout.n_temperatures; ++t)
      weight_sum.push_back(weights[base + layout.weight(t)]);
    most = std::max(most, weights[base + layout.six_count()] / 6.0);
  }
  const double nq = static_cast<double>(problem_.mesh.size());
  const double prefactor = problem_.rate_constant / nq;
  double evaluations = 0.0;
  for (auto n = static_cast<double>(draws);; n *= 2.0) {
    const std::vector<double> sample = drawn(n, weight_sum, "sampling 3ph");
    ThreePhononRates rates = empty();
    double processes[kChannels3] = {0.0, 0.0};
    for (std::int64_t row = 0; row < n_rows; ++row)
      for (int c = 0; c < kChannels3; ++c) {
        const ChannelRates out = of_channel(rates, c);
        const std::int64_t sum = row * kChannels3 + c;
        const double* s = &sample[static_cast<std::size_t>(sum * layout.size())];
        for (int t = 0; t < layout.n_temperatures; ++t) {
          const auto at = static_cast<std::size_t>(t * n_rows + row);
          out.weighted[at] = out.factor * s[layout.weighted_phase_space(t)] / nq;
          const SampledSum estimate = ratio_estimate(
              layout, s, t, weight_sum[static_cast<std::size_t>(sum * layout.n_temperatures + t)]);
          out.rate[at] = out.factor * prefactor * estimate.value;
          out.normal[at] = out.factor * prefactor * estimate.normal;
          out.error[at] = out.factor * prefactor * estimate.error;
        }
        out.phase_space[row] = s[layout.phase_space()];
        processes[c] += s[layout.six_count()] / 6.0;
        evaluations += s[layout.evaluations()];
      }
    for (int c = 0; c < kChannels3; ++c)
      of_channel(rates, c).processes = std::llround(processes[c]);
    rates.evaluations = evaluations;
    progress_.metric("evaluations_3ph", evaluations);
    // With far more draws than processes every process is drawn, and further draws change nothing.
    if (good_enough(rates) || n > 1e3 * most) return rates;
  }
}

}  // namespace quasi::thermal
