#include "workers/gw/solver/calculation/cost/cost_samples.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "workers/backend/stopwatch.hpp"
#include "workers/gw/kernels/pole_sums/diagonal/response_rows.hpp"
#include "workers/gw/kernels/pole_sums/pole_change_kernels.hpp"
#include "workers/gw/solver/mean_field/random_factors.hpp"
#include "workers/gw/solver/screening/long_wave.hpp"
#include "workers/gw/solver/self_energy/sigma_parts.hpp"

namespace quasi::gw {
namespace {

// Sizes of the samples. The CPU takes one left band. A device adds pairs to χ in large blocks, and
// a few pairs would only time the transfer of χ through its caches. A device starts and ends a
// call in the time of some hundred pairs.
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

}  // namespace

CostSamples::CostSamples(const MeanField& field, const Plan& plan, GwKernels& kernels)
    : field_(field),
      plan_(plan),
      kernels_(kernels),
      on_device_(kernels.device().backend != Backend::kCpu),
      n_occupied_(field.n_occupied),
      n_left_(on_device_ ? std::min(kLeftBandsOnDevice, n_occupied_) : 1),
      n_right_(std::min<std::int64_t>(on_device_ ? kRightBandsOnDevice : kRightBandsOnCpu,
                                      field.waves.n_bands)),
      screened_(sphere_at(std::max(plan.epsilon.epsilon_cutoff_ry, plan.sigma.screened_cutoff_ry))),
      screened_sample_(load_sample(screened_, n_right_)),
      block_(kernels.pair_products().make_block()) {}

UnitCosts CostSamples::measure(StepTimes& times) {
  UnitCosts cost;
  StepClock clock(&times);
  cost.pair_s = seconds_when_warm([&] { fill_pairs(); }) / static_cast<double>(n_right_);
  cost.load_s = load_seconds();
  clock.step("products");
  if (!plan_.stored) {
    if (field_.by_velocity) cost.velocity_s = velocity_seconds();
    clock.step("velocity");
    cost.chi_pair_s = chi_pair_seconds();
    if (plan_.epsilon.frequencies_ry.size() > 1) cost.frequency_pair_s = frequency_pair_seconds();
    clock.step("polarizability");
    cost.inversion_s = inversion_seconds();
    clock.step("inversion");
  }
  const bool frequencies = uses_frequencies(plan_.sigma.method);
  const bool cohsex = plan_.sigma.method == SigmaMethod::kCohsex;
  // A sum that also gives the error bars needs no other sample of Σ.
  const bool once = sums_once(plan_);
  if (!frequencies && !cohsex && !once) cost.pole_energy_s = pole_energy_seconds();
  if (plan_.error_bars.first_order) cost.response_s = response_seconds();
  if (frequencies || cohsex || plan_.sigma.exact_static_ch) cost.form_s = form_seconds();
  if (plan_.sigma.closed_sum_x_ry && !once) cost.closed_form_s = closed_form_seconds();
  clock.step("self_energy");
  cost.bare_pair_s = bare_pair_seconds();
  clock.step("exchange");
  return cost;
}

GSphere CostSamples::sphere_at(double cutoff_ry) const {
  return make_g_sphere(field_.crystal().bdot, {}, cutoff_ry);
}

void CostSamples::fill_pairs() {
  kernels_.pair_products().fill({*screened_sample_.left, {0, 1}},
                                {*screened_sample_.right, {0, n_right_}}, *screened_sample_.sphere,
                                *block_);
}

std::int64_t CostSamples::sum_pairs() const { return on_device_ ? kPairsOnDevice : kPairsOnCpu; }

std::int64_t CostSamples::sum_order() const {
  return std::min(screened_.size(), kSpherePlaneWaves);
}

double CostSamples::scaled_to_sphere(double seconds) const {
  return seconds *
         std::pow(static_cast<double>(screened_.size()) / static_cast<double>(sum_order()), 2) /
         static_cast<double>(sum_pairs());
}

void CostSamples::load_sum_sample(std::int64_t n_left, std::int64_t n_right) {
  const bool real = is_real(field_.waves.waves[0].coefficients[0]);
  const std::vector<Cplx> sample(static_cast<std::size_t>(n_left * n_right * sum_order()),
                                 Cplx{0.5, real ? 0.0 : 0.25});
  block_->load(view<const Cplx>(sample, n_left, n_right, sum_order()));
}

std::shared_ptr<const LoadedPoleModel> CostSamples::load_model() {
  const std::int64_t order = sum_order();
  const auto size = static_cast<std::size_t>(order * order);
  const std::vector<Cplx> strength(size, Cplx{1.0, 0.0});
  const std::vector<double> pole(size, 1.0);
  return kernels_.pole_sums().load(
      {view<const Cplx>(strength, order, order), view<const double>(pole, order, order)},
      plan_.sigma.rules);
}

std::int64_t CostSamples::occupied_of(std::int64_t n_bands) const {
  return n_bands * n_occupied_ / plan_.sigma.bands;
}

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

double CostSamples::load_seconds() {
  const auto box = sum_box(field_, screened_.g);
  return seconds_when_warm(
             [&] { load(kernels_, waves_at(field_, {}, 0, 0, static_cast<int>(n_right_), box)); }) /
         static_cast<double>(n_right_);
}

double CostSamples::velocity_seconds() {
  const auto n_v = static_cast<double>(n_occupied_);
  const std::int64_t n_c = plan_.epsilon.bands - n_occupied_,
                     left = std::min<std::int64_t>(n_occupied_, kLeftBandsOnDevice),
                     right = std::min(n_c, n_right_);
  const std::vector<Vec3> axes{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  const BandPairs pairs{0, 0, {0, left}, {n_occupied_, n_occupied_ + right}};
  const double seconds = seconds_when_warm(
      [&] { velocity_matrices(field_.waves, pairs, axes, field_.nonlocal.get(), kernels_); });
  // A device takes most of this time for the transfer of the states, and a CPU for the products.
  const double share = on_device_
                           ? (n_v + static_cast<double>(n_c)) / static_cast<double>(left + right)
                           : n_v * static_cast<double>(n_c) / static_cast<double>(left * right);
  return seconds * share;
}

double CostSamples::chi_pair_seconds() {
  // Only the seconds of the two steps count. Memory that a call allocates and frees is not paid for
  // every pair. The sample is one block, whose steps follow each other. Steps of two blocks that
  // overlap take as long together. The first turn makes plans, and an idle device takes some
  // tenths of a second to raise its clock.
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
    const double seconds = report.transform_seconds + report.product_seconds;
    if (turn > 0 && seconds < least) {
      least = seconds;
      product_s_ =
          report.product_seconds / (static_cast<double>(n_right_) * static_cast<double>(n_left_));
    }
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
  if (plan_.epsilon.frequencies_ry.size() > 1) return a * n * n + b * n * n * n;
  // A Cholesky inversion has as many operations as the products of n pairs. Small matrices reach a
  // fraction of the speed of large ones, which is at least half of that of the products.
  return a * n * n + std::clamp(b * n * n * n, n * product_s_, 2.0 * n * product_s_);
}

double CostSamples::pole_energy_seconds() {
  const std::int64_t few = sum_pairs();
  load_sum_sample();
  // Occupied bands take longer, because their SX is told apart from CH.
  std::vector<double> occupation(static_cast<std::size_t>(few), 0.0),
      energy(static_cast<std::size_t>(few), -2.0);
  std::fill_n(occupation.begin(), occupied_of(few), 1.0);
  std::fill_n(energy.begin(), occupied_of(few), 2.0);
  const auto model = load_model();
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

std::int64_t CostSamples::mean_run(std::int64_t first, std::int64_t end) const {
  std::int64_t runs = 0;
  for (std::int64_t n = first; n < end; ++n)
    runs += n == first ||
            std::abs(field_.waves.energy(0, 0, static_cast<int>(n)) -
                     field_.waves.energy(0, 0, static_cast<int>(n - 1))) > kEqualEnergy_ry;
  return std::max<std::int64_t>(1, (end - first) / std::max<std::int64_t>(runs, 1));
}

double CostSamples::response_seconds() {
  if (on_device_) return scaled_to_sphere(seconds_of_response(16, sum_pairs() / 16));
  // The bands of one part of Σ: its sums are multiplied with every change once for each multiplet
  // of outer states. A few pairs would count that product as their own, so that two samples are
  // needed to tell them apart.
  const std::int64_t few = sum_pairs(), many = 4 * few;
  const double low = seconds_of_response(1, few), high = seconds_of_response(1, many),
               of_pair = std::max(0.0, high - low) / static_cast<double>(many - few),
               of_changes = std::max(0.0, low - static_cast<double>(few) * of_pair);
  constexpr std::int64_t kParts = 8;  // of sigma_responses()
  const PartAtK part =
      parts_of_sigma(static_cast<std::size_t>(field_.waves.n_k()), plan_.sigma, kParts).front();
  const auto pairs = static_cast<double>((part.band_end - part.band_begin) *
                                         mean_run(plan_.sigma.band_min - 1, plan_.sigma.band_max));
  return scaled_to_sphere(static_cast<double>(few) * (of_pair + of_changes / pairs));
}

double CostSamples::seconds_of_response(std::int64_t n_left, std::int64_t few) {
  load_sum_sample(n_left, few);
  std::vector<double> occupation(static_cast<std::size_t>(few), 0.0), energy, other;
  const std::int64_t n_v = occupied_of(few),
                     first_random = field_.waves.n_bands - plan_.error_bars.random_bands,
                     of_sigma = plan_.sigma.bands - first_random,
                     random = few * of_sigma / plan_.sigma.bands, run = mean_run(0, first_random),
                     random_run = mean_run(first_random, field_.waves.n_bands) * of_sigma /
                                  plan_.error_bars.random_bands;
  std::fill_n(occupation.begin(), n_v, 1.0);
  // Energies are equal in runs as long as those of the job are on the average.
  for (std::int64_t l = 0; l < n_left; ++l)
    for (std::int64_t n = 0; n < few; ++n) {
      const bool is_random = n >= few - random;
      const double x = 2.0 + 1e-3 * static_cast<double>(n / (is_random ? random_run : run));
      energy.push_back(n < n_v ? x : -x);
      other.push_back(is_random ? 0.1 - x : std::nan(""));
    }
  std::vector<std::int64_t> groups;
  const std::int64_t group = mean_run(plan_.sigma.band_min - 1, plan_.sigma.band_max);
  for (std::int64_t end = group; end < n_left; end += group) groups.push_back(end);
  groups.push_back(n_left);
  const auto elements = static_cast<std::size_t>(elements_of_change(sum_order(), true));
  const PoleChange change{UnsetVector<std::complex<float>>(elements, {0.01F, 0.0F}),
                          UnsetVector<float>(elements, 0.01F)};
  const std::vector<const PoleChange*> list(static_cast<std::size_t>(plan_.error_bars.blocks) + 1,
                                            &change);
  const auto n_changes = static_cast<std::int64_t>(list.size());
  const auto changes = kernels_.pole_sums().load_changes(load_model(), list);
  std::vector<double> total(static_cast<std::size_t>(n_changes * n_left)), slope(total.size()),
      own(static_cast<std::size_t>(kOwnSums * n_left));
  return seconds_when_warm([&] {
    changes->add_response(
        *block_,
        {.x_ry = view<const double>(energy, n_left, few),
         .occupation = view<const double>(occupation, few),
         .closed_x_ry = plan_.sigma.closed_sum_x_ry.value_or(0.0),
         .other_x_ry = view<const double>(other, n_left, few),
         .group_end = groups,
         .screened_exchange = true},
        {view<double>(total, n_changes, n_left),
         plan_.sigma.slope ? view<double>(slope, n_changes, n_left) : View<double, 2>{},
         view<double>(own, 1, kOwnSums, n_left)});
  });
}

double CostSamples::closed_form_seconds() {
  const std::int64_t few = sum_pairs();
  load_sum_sample();
  const auto model = load_model();
  std::vector<Cplx> form(static_cast<std::size_t>(few));
  return scaled_to_sphere(seconds_when_warm([&] {
    model->closed_forms(*block_, *plan_.sigma.closed_sum_x_ry, view<Cplx>(form, 1, few));
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
  // Time grows in proportion to the bands. A short sample is therefore enough.
  const std::int64_t n_right = std::min({n_right_, n_occupied_, kRightBandsOnCpu});
  screened_sample_ = {};  // frees its memory on the device
  const SampleOnDevice sample = load_sample(bare, n_right);
  const std::vector<double> coulomb(static_cast<std::size_t>(bare.size()), 1.0);
  std::vector<double> norms(static_cast<std::size_t>(n_right));
  return seconds_when_warm([&] {
           kernels_.pair_products().fill({*sample.left, {0, 1}}, {*sample.right, {0, n_right}},
                                         *sample.sphere, *block_);
           block_->weighted_norms(view<const double>(coulomb, coulomb.size()),
                                  view<double>(norms, 1, n_right));
         }) /
         static_cast<double>(n_right);
}

}  // namespace quasi::gw
