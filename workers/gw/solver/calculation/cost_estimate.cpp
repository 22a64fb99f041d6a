#include "workers/gw/solver/calculation/cost_estimate.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "workers/backend/stopwatch.hpp"
#include "workers/gw/kernels/pole_sums/pole_change_kernels.hpp"
#include "workers/gw/solver/mean_field/random_factors.hpp"
#include "workers/gw/solver/screening/polarizability/polarizability.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"

namespace quasi::gw {
namespace {

// Sizes of the samples. The CPU takes one left band. A device adds pairs to χ in large blocks, and
// a few pairs would only time the transfer of χ through its caches. A device starts and ends a call
// in the time of some hundred pairs.
constexpr std::int64_t kRightBandsOnCpu = 64, kRightBandsOnDevice = 512, kLeftBandsOnDevice = 8;
// Orders of the matrices whose inversion is timed. Transfers of a device grow as the square of the
// order, so that two orders are needed to tell them from the inversion.
constexpr std::int64_t kMatrixOrderOnCpu = 600, kMatrixOrdersOnDevice[] = {1024, 3072};
constexpr std::int64_t kSpherePlaneWaves = 2000;                // of the timed sums over G and G'
constexpr std::int64_t kPairsOnCpu = 8, kPairsOnDevice = 2048;  // of the timed sums over G and G'

template <typename Work>
double seconds_of(const Work& work) {
  const Stopwatch clock;
  work();
  return clock.seconds();
}
/// Times the work after a first run, which makes plans and allocates memory.
template <typename Work>
double seconds_when_warm(const Work& work) {
  work();
  return std::min(seconds_of(work), seconds_of(work));
}

/// Seconds of one unit of work on one device.
struct UnitCosts {
  double chi_pair_s = 0.0;        ///< a pair of bands of a static χ: its product and its addition
  double pair_s = 0.0;            ///< a pair product on the ε sphere
  double frequency_pair_s = 0.0;  ///< a pair added to χ at one more frequency
  double inversion_s = 0.0;       ///< of one matrix of the largest order
  double pole_energy_s = 0.0;     ///< a pair and energy of the plasmon-pole sum
  double response_s = 0.0;        ///< a pair of the response of Σ; 0: not wanted
  double form_s = 0.0;            ///< a quadratic form
  double bare_pair_s = 0.0;       ///< a pair product on the bare sphere, summed on the host
};

/// Bands of both sides at Γ and a sphere, on a device.
struct SampleOnDevice {
  std::unique_ptr<const LoadedBands> left, right;
  std::unique_ptr<const LoadedSphere> sphere;
};

/// Measures the costs of one device on a few pairs of the job's own states.
class CostSamples {
 public:
  CostSamples(const MeanField& field, const Plan& plan, GwKernels& kernels)
      : field_(field),
        plan_(plan),
        kernels_(kernels),
        on_device_(kernels.device().backend != Backend::kCpu),
        n_occupied_(field.n_occupied),
        n_left_(on_device_ ? std::min(kLeftBandsOnDevice, n_occupied_) : 1),
        n_right_(std::min<std::int64_t>(on_device_ ? kRightBandsOnDevice : kRightBandsOnCpu,
                                        field.waves.n_bands)),
        screened_(
            sphere_at(std::max(plan.epsilon.epsilon_cutoff_ry, plan.sigma.screened_cutoff_ry))),
        screened_sample_(load_sample(screened_, n_right_)),
        block_(kernels.pair_products().make_block()) {}

  UnitCosts measure() {
    UnitCosts cost;
    cost.pair_s = seconds_when_warm([&] { fill_pairs(); }) / static_cast<double>(n_right_);
    if (!plan_.stored) {
      cost.chi_pair_s = chi_pair_seconds();
      if (plan_.epsilon.frequencies_ry.size() > 1) cost.frequency_pair_s = frequency_pair_seconds();
      cost.inversion_s = inversion_seconds();
    }
    const bool frequencies = uses_frequencies(plan_.sigma.method);
    const bool cohsex = plan_.sigma.method == SigmaMethod::kCohsex;
    if (!frequencies && !cohsex) cost.pole_energy_s = pole_energy_seconds();
    if (plan_.error_bars.first_order) cost.response_s = response_seconds();
    if (frequencies || cohsex || plan_.sigma.exact_static_ch || plan_.sigma.closed_sum_x_ry)
      cost.form_s = form_seconds();
    cost.bare_pair_s = bare_pair_seconds();
    return cost;
  }

 private:
  GSphere sphere_at(double cutoff_ry) const {
    return make_g_sphere(field_.crystal().bdot, {}, cutoff_ry);
  }
  SampleOnDevice load_sample(const GSphere& sphere, std::int64_t right_bands) const;
  void fill_pairs() {
    kernels_.pair_products().fill({*screened_sample_.left, {0, 1}},
                                  {*screened_sample_.right, {0, n_right_}},
                                  *screened_sample_.sphere, *block_);
  }
  double chi_pair_seconds();
  double frequency_pair_seconds();
  /// Seconds of the inversion of one matrix of an order, transfers included.
  double inversion_seconds_of(std::int64_t order);
  double inversion_seconds();
  double pole_energy_seconds();
  double response_seconds();
  double form_seconds();
  double bare_pair_seconds();

  /// Pairs and plane waves of the timed sums over G and G'.
  std::int64_t sum_pairs() const { return on_device_ ? kPairsOnDevice : kPairsOnCpu; }
  std::int64_t sum_order() const { return std::min(screened_.size(), kSpherePlaneWaves); }
  /// Seconds of one pair on the whole sphere from those of all sampled pairs on a part of it.
  double scaled_to_sphere(double seconds) const {
    return seconds *
           std::pow(static_cast<double>(screened_.size()) / static_cast<double>(sum_order()), 2) /
           static_cast<double>(sum_pairs());
  }
  void load_sum_sample() {
    const std::vector<Cplx> sample(static_cast<std::size_t>(sum_pairs() * sum_order()),
                                   Cplx{0.5, 0.25});
    block_->load(view<const Cplx>(sample, 1, sum_pairs(), sum_order()));
  }

  const MeanField& field_;
  const Plan& plan_;
  GwKernels& kernels_;
  bool on_device_;
  std::int64_t n_occupied_, n_left_, n_right_;
  GSphere screened_;
  SampleOnDevice screened_sample_;
  std::unique_ptr<PairBlock> block_;
};

SampleOnDevice CostSamples::load_sample(const GSphere& sphere, std::int64_t right_bands) const {
  const Vec3 gamma{};
  const auto box = sum_box(field_, sphere.g);
  std::vector<std::int32_t> index;
  for (const IVec3& g : sphere.g) index.push_back(box_position(g, box));
  return {
      load(kernels_, waves_at(field_, gamma, 0, 0, static_cast<int>(n_left_), box)),
      load(kernels_, waves_at(field_, gamma, 0, 0, static_cast<int>(right_bands), box)),
      kernels_.pair_products().load_sphere(box, view<const std::int32_t>(index, index.size()), {})};
}

double CostSamples::chi_pair_seconds() {
  // Only the seconds of the two steps count. Memory that a call allocates and frees is not paid for
  // every pair. A device runs both steps side by side. The first turn makes plans, and an idle
  // device takes some tenths of a second to raise its clock.
  constexpr int kTurns = 3, kMostTurns = 16;
  constexpr double kClock_s = 0.2;
  const std::vector<double> weight(static_cast<std::size_t>(n_left_ * n_right_), -1.0);
  const auto chi = kernels_.polarizability().start({.n_static = screened_.size()});
  double least = std::numeric_limits<double>::infinity(), spent = 0.0;
  for (int turn = 0; turn < kTurns || (on_device_ && spent < kClock_s && turn < kMostTurns);
       ++turn) {
    const auto report = chi->add_pairs({{*screened_sample_.left, {0, n_left_}},
                                        {*screened_sample_.right, {0, n_right_}},
                                        *screened_sample_.sphere,
                                        view<const double>(weight, n_left_, n_right_),
                                        {}},
                                       {});
    const double seconds = on_device_ ? std::max(report.transform_seconds, report.product_seconds)
                                      : report.transform_seconds + report.product_seconds;
    if (turn > 0) least = std::min(least, seconds);
    spent += seconds;
  }
  return least / (static_cast<double>(n_right_) * static_cast<double>(n_left_));
}

double CostSamples::frequency_pair_seconds() {
  fill_pairs();
  const std::vector<Cplx> weight(static_cast<std::size_t>(n_right_), Cplx{-1.0, 0.1});
  const auto chi = kernels_.polarizability().start({.n_frequencies = 1, .n = screened_.size()});
  return seconds_when_warm(
             [&] { chi->add_at_frequencies(*block_, view<const Cplx>(weight, 1, 1, n_right_)); }) /
         static_cast<double>(n_right_);
}

double CostSamples::inversion_seconds_of(std::int64_t order) {
  // The static matrix of a crystal with real states is real, and is inverted in real arithmetic.
  const bool real = is_real(field_.waves.waves[0].coefficients[0]);
  std::vector<Cplx> matrix(static_cast<std::size_t>(order * order));
  const auto invert = [&] {
    std::fill(matrix.begin(), matrix.end(), Cplx{});
    for (std::int64_t i = 0; i < order; ++i)
      matrix[static_cast<std::size_t>(i * (order + 1))] = 2.0;
    if (!real && order > 1) {
      matrix[1] = {0.0, 0.5};
      matrix[static_cast<std::size_t>(order)] = {0.0, -0.5};
    }
    const auto whole = view<Cplx>(matrix, order, order);
    if (plan_.epsilon.frequencies_ry.size() > 1)
      kernels_.dense().invert_general(whole);
    else
      kernels_.dense().invert_positive_definite(whole);
  };
  return seconds_when_warm(invert);
}

double CostSamples::inversion_seconds() {
  const auto n = static_cast<double>(screened_.size());
  const auto& [small, large] = kMatrixOrdersOnDevice;
  if (!on_device_ || screened_.size() <= large) {
    const std::int64_t order =
        on_device_ ? screened_.size() : std::min(screened_.size(), kMatrixOrderOnCpu);
    return inversion_seconds_of(order) * std::pow(n / static_cast<double>(order), 3);
  }
  // t = a n² + b n³
  const double low = inversion_seconds_of(small), high = inversion_seconds_of(large),
               x = static_cast<double>(small), y = static_cast<double>(large);
  const double b = std::max(0.0, (high / (y * y) - low / (x * x)) / (y - x));
  const double a = std::max(0.0, high / (y * y) - b * y);
  return a * n * n + b * n * n * n;
}

double CostSamples::pole_energy_seconds() {
  const std::int64_t few = sum_pairs(), order = sum_order();
  load_sum_sample();
  const auto size = static_cast<std::size_t>(order * order);
  const std::vector<Cplx> strength(size, Cplx{1.0, 0.0});
  const std::vector<double> pole(size, 1.0);
  // Occupied bands take longer, because their SX is told apart from CH.
  std::vector<double> occupation(static_cast<std::size_t>(few), 0.0),
      energy(static_cast<std::size_t>(few), -2.0);
  const auto n_occupied = static_cast<std::size_t>(few * n_occupied_ / plan_.sigma.bands);
  std::fill_n(occupation.begin(), n_occupied, 1.0);
  std::fill_n(energy.begin(), n_occupied, 2.0);
  const auto model = kernels_.pole_sums().load(
      {view<const Cplx>(strength, order, order), view<const double>(pole, order, order)},
      plan_.sigma.rules);
  const DiagonalTerms terms{view<const double>(energy, 1, few, 1),
                            view<const double>(occupation, few), 1.0};
  std::vector<Cplx> total(1), sx(1), slope(1);
  return scaled_to_sphere(seconds_when_warm([&] {
    if (plan_.sigma.slope)
      model->add_diagonal_slope(*block_, terms,
                                {view<Cplx>(total, 1), view<Cplx>(sx, 1), view<Cplx>(slope, 1)});
    else
      model->add_diagonal(*block_, terms, {view<Cplx>(total, 1, 1), view<Cplx>(sx, 1, 1)});
  }));
}

double CostSamples::response_seconds() {
  const std::int64_t few = sum_pairs(), order = sum_order();
  load_sum_sample();
  const auto size = static_cast<std::size_t>(order * order);
  const std::vector<Cplx> strength(size, Cplx{1.0, 0.0});
  const std::vector<double> pole(size, 1.0), energy(static_cast<std::size_t>(few), -2.0),
      occupation(static_cast<std::size_t>(few), 0.0);
  const auto model = kernels_.pole_sums().load(
      {view<const Cplx>(strength, order, order), view<const double>(pole, order, order)},
      plan_.sigma.rules);
  const auto elements = static_cast<std::size_t>(elements_of_change(order, true));
  const PoleChange change{UnsetVector<std::complex<float>>(elements, {0.01F, 0.0F}),
                          UnsetVector<float>(elements, 0.01F)};
  const auto changes = kernels_.pole_sums().load_changes(model, {&change});
  std::vector<double> total(1), slope(1);
  return scaled_to_sphere(seconds_when_warm([&] {
    changes->add_response(*block_,
                          {.x_ry = view<const double>(energy, 1, few),
                           .occupation = view<const double>(occupation, few),
                           .closed_x_ry = plan_.sigma.closed_sum_x_ry.value_or(0.0)},
                          {view<double>(total, 1, 1),
                           plan_.sigma.slope ? view<double>(slope, 1, 1) : View<double, 2>{}});
  }));
}

double CostSamples::form_seconds() {
  const std::int64_t few = sum_pairs(), order = sum_order();
  load_sum_sample();
  const std::vector<Cplx> matrix(static_cast<std::size_t>(order * order), Cplx{1.0, 0.0});
  std::vector<Cplx> form(static_cast<std::size_t>(few));
  return scaled_to_sphere(seconds_when_warm([&] {
    block_->quadratic_forms(view<const Cplx>(matrix, order, order), view<Cplx>(form, 1, few));
  }));
}

double CostSamples::bare_pair_seconds() {
  const GSphere bare = sphere_at(plan_.sigma.bare_cutoff_ry);
  // All products pass through the host, so that time grows in proportion to the bands. A short
  // sample is therefore enough.
  const std::int64_t n_right = std::min({n_right_, n_occupied_, kRightBandsOnCpu});
  screened_sample_ = {};  // frees its memory on the device
  const SampleOnDevice sample = load_sample(bare, n_right);
  std::vector<Cplx> products(static_cast<std::size_t>(n_right * bare.size()));
  double sum = 0.0;
  const double seconds = seconds_when_warm([&] {
    kernels_.pair_products().fill({*sample.left, {0, 1}}, {*sample.right, {0, n_right}},
                                  *sample.sphere, *block_);
    block_->read(view<Cplx>(products, 1, n_right, bare.size()));
    for (const Cplx& m : products) sum += std::norm(m);
  });
  // The condition keeps the compiler from removing the sum.
  return sum >= 0.0 ? seconds / static_cast<double>(n_right) : 0.0;
}

/// Estimates the seconds of the error bars of pseudobands.
/// @param states     outer states at all q, over the devices
/// @param matrices   matrices that a block inverts
double error_bar_seconds(const Plan& plan, const UnitCosts& cost, double states, double matrices) {
  const ErrorBarWork& work = plan.error_bars;
  if (work.blocks == 0) return 0.0;
  const double inversions = (work.blocks + 1) * matrices * cost.inversion_s,
               bands = plan.sigma.bands, random = work.random_bands,
               closed = plan.sigma.closed_sum_x_ry ? cost.form_s : 0.0;
  if (!work.first_order)
    return inversions +
           (work.blocks + 1) * states * bands * (cost.pair_s + cost.pole_energy_s + closed);
  return inversions + states * (bands * (cost.pair_s + cost.response_s) +
                                random * (cost.pair_s + 2.0 * cost.pole_energy_s));
}

}  // namespace

void estimate_seconds(const MeanField& field, DeviceTeam& team, Plan* plan) {
  const UnitCosts cost = CostSamples(field, *plan, team.first()).measure();
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
  if (!plan->stored)
    for (const Vec3& q : screening_points(field)) {
      const auto pairs = static_cast<double>(polarizability_pairs(field, q, plan->epsilon));
      const double each = n_other > 0.0 ? cost.pair_s + cost.chi_pair_s +
                                              n_other * of_epsilon * cost.frequency_pair_s
                                        : cost.chi_pair_s;
      plan->epsilon_seconds += (pairs * each + (1.0 + n_other) * cost.inversion_s) / devices;
    }
  double points = 0.0;  // (k, q) of Σ
  for (const int ik : s.kpoints)
    for (const auto& star :
         q_points_by_star(field, field.waves.k[static_cast<std::size_t>(ik)], s.reduce_q))
      points += static_cast<double>(star.second.size());
  points *= field.n_spins();
  const double n_l = s.band_max - s.band_min + 1, pairs = points * n_l * s.bands;
  const bool frequencies = uses_frequencies(s.method);
  double forms = s.exact_static_ch || s.method == SigmaMethod::kCohsex ? 1.0 : 0.0;
  if (s.closed_sum_x_ry) forms += 1.0;
  if (frequencies) {
    const auto n_f = static_cast<double>(s.contour.imaginary_ry.size() + s.contour.real_ry.size());
    const double share = s.subspace.wanted() ? cost_between(s.subspace.vectors) : of_epsilon;
    forms += share < 1.0 ? 2.0 + std::sqrt(share) + n_f * share : n_f;
  }
  const auto energies = static_cast<double>(s.offsets_ry.size());
  plan->sigma_seconds =
      (pairs * (cost.pair_s + energies * cost.pole_energy_s + forms * cost.form_s) +
       points * n_l * field.n_occupied * cost.bare_pair_s) /
      devices;
  plan->error_bar_seconds =
      error_bar_seconds(*plan, cost, points * n_l / devices,
                        (1.0 + n_other) * static_cast<double>(screening_points(field).size()));
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
