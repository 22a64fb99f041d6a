#include "workers/gw/solver/calculation/cost_estimate.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>

#include "workers/gw/solver/screening/polarizability/polarizability.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"

namespace quasi::gw {
namespace {

constexpr std::int64_t kSampleBands = 64;  // right bands of a sample; one left band
// A device adds pairs to χ in large blocks, and a few pairs would time no more than the way of χ
// through its caches.
constexpr std::int64_t kSampleLeft = 8, kSampleBandsOfDevice = 512;
constexpr std::int64_t kSampleOrder = 600;  // of the matrix whose inversion is timed
constexpr std::int64_t kSampleSphere =
    2000;  // plane waves of the sums over G and G' that are timed
constexpr std::int64_t
    kSamplePairs = 8,
    kSamplePairsOfDevice =
        2048;  // of those sums; a device starts and ends a call in the time of some hundreds

template <typename Work>
double seconds_of(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}
/// The second of two runs: the first makes plans and memory.
template <typename Work>
double seconds_when_warm(const Work& work) {
  work();
  return std::min(seconds_of(work), seconds_of(work));
}

/// What one unit of work costs on one device.
struct UnitCosts {
  double chi_pair_s = 0.0;        ///< a pair of bands of a static χ, made and added
  double pair_s = 0.0;            ///< a pair product on the ε sphere
  double frequency_pair_s = 0.0;  ///< a pair added to χ at one more frequency
  double inversion_s = 0.0;       ///< of one matrix of the largest order
  double pole_energy_s = 0.0;     ///< a pair and energy of the plasmon-pole sum
  double form_s = 0.0;            ///< a quadratic form
  double bare_pair_s = 0.0;       ///< a pair product on the bare sphere, summed on the host
};

/// Bands of both sides at Γ and a sphere, on a device.
struct SampleOnDevice {
  std::unique_ptr<const LoadedBands> left, right;
  std::unique_ptr<const LoadedSphere> sphere;
};

UnitCosts measure(const MeanField& field, const Plan& plan, GwKernels& kernels) {
  UnitCosts cost;
  const SigmaOptions& s = plan.sigma;
  const Vec3 k{};
  const auto sphere_at = [&](double cutoff_ry) {
    return make_g_sphere(field.crystal().bdot, {}, cutoff_ry);
  };
  const auto n_v = static_cast<std::int64_t>(field.n_occupied);
  const bool on_device = kernels.device().backend != Backend::kCpu;
  const std::int64_t n_left = on_device ? std::min(kSampleLeft, n_v) : 1;
  const std::int64_t n_right =
      std::min<std::int64_t>(on_device ? kSampleBandsOfDevice : kSampleBands, field.waves.n_bands);
  const auto load_box = [&](const GSphere& sphere, std::int64_t bands) {
    const auto box = sum_box(field, sphere.g);
    std::vector<std::int32_t> index;
    for (const IVec3& g : sphere.g) index.push_back(box_position(g, box));
    return SampleOnDevice{load(kernels, waves_at(field, k, 0, 0, static_cast<int>(n_left), box)),
                          load(kernels, waves_at(field, k, 0, 0, static_cast<int>(bands), box)),
                          kernels.pair_products().load_sphere(
                              box, view<const std::int32_t>(index, index.size()), {})};
  };
  const GSphere screened =
      sphere_at(std::max(plan.epsilon.epsilon_cutoff_ry, s.screened_cutoff_ry));
  const std::int64_t n_g = screened.size();
  SampleOnDevice at = load_box(screened, n_right);
  const auto block = kernels.pair_products().make_block();
  const auto n = static_cast<double>(n_right);
  const auto make = [&] {
    kernels.pair_products().fill({*at.left, {0, 1}}, {*at.right, {0, n_right}}, *at.sphere, *block);
  };
  cost.pair_s = seconds_when_warm(make) / n;
  const std::vector<double> weight(static_cast<std::size_t>(n_left * n_right), -1.0);
  if (!plan.stored) {
    const auto chi = kernels.polarizability().start({.n_static = n_g});
    // The steps' own seconds: what a call allocates and frees around them is not paid for every
    // pair. A device takes both steps side by side. The first turn makes plans; an idle device
    // takes some tenths of a second to raise its clock.
    constexpr int kTurns = 3, kMostTurns = 16;
    constexpr double kClock_s = 0.2;
    double least = std::numeric_limits<double>::infinity(), spent = 0.0;
    for (int turn = 0; turn < kTurns || (on_device && spent < kClock_s && turn < kMostTurns);
         ++turn) {
      const auto report = chi->add_pairs({{*at.left, {0, n_left}},
                                          {*at.right, {0, n_right}},
                                          *at.sphere,
                                          view<const double>(weight, n_left, n_right),
                                          {}},
                                         {});
      const double seconds = on_device ? std::max(report.transform_seconds, report.product_seconds)
                                       : report.transform_seconds + report.product_seconds;
      if (turn > 0) least = std::min(least, seconds);
      spent += seconds;
    }
    cost.chi_pair_s = least / (n * static_cast<double>(n_left));
    if (plan.epsilon.frequencies_ry.size() > 1) {
      make();
      const std::vector<Cplx> complex_weight(static_cast<std::size_t>(n_right), Cplx{-1.0, 0.1});
      const auto further = kernels.polarizability().start({.n_frequencies = 1, .n = n_g});
      cost.frequency_pair_s =
          seconds_when_warm([&] {
            further->add_at_frequencies(*block, view<const Cplx>(complex_weight, 1, 1, n_right));
          }) /
          n;
    }
    const std::int64_t edge = std::min(n_g, kSampleOrder);
    std::vector<Cplx> matrix(static_cast<std::size_t>(edge * edge));
    const auto invert = [&] {
      std::fill(matrix.begin(), matrix.end(), Cplx{});
      for (std::int64_t i = 0; i < edge; ++i)
        matrix[static_cast<std::size_t>(i * (edge + 1))] = 2.0;
      kernels.dense().invert_general(view<Cplx>(matrix, edge, edge));
    };
    cost.inversion_s = seconds_when_warm(invert) *
                       std::pow(static_cast<double>(n_g) / static_cast<double>(edge), 3);
  }
  const bool frequencies = uses_frequencies(s.method), cohsex = s.method == SigmaMethod::kCohsex;
  const std::int64_t few = on_device ? kSamplePairsOfDevice : kSamplePairs,
                     order = std::min(n_g, kSampleSphere);
  const double to_whole = std::pow(static_cast<double>(n_g) / static_cast<double>(order), 2);
  const std::vector<Cplx> sample(static_cast<std::size_t>(few * order), Cplx{0.5, 0.25});
  if (!frequencies && !cohsex) {
    block->load(view<const Cplx>(sample, 1, few, order));
    const auto size = static_cast<std::size_t>(order * order);
    const std::vector<Cplx> strength(size, Cplx{1.0, 0.0});
    const std::vector<double> pole(size, 1.0), occupation(static_cast<std::size_t>(few), 0.0),
        x(static_cast<std::size_t>(few), -2.0);
    const auto model = kernels.pole_sums().load(
        {view<const Cplx>(strength, order, order), view<const double>(pole, order, order)},
        s.rules);
    const DiagonalTerms terms{view<const double>(x, 1, few, 1), view<const double>(occupation, few),
                              1.0};
    std::vector<Cplx> total(1), sx(1), slope(1);
    const auto sum = [&] {
      if (s.slope)
        model->add_diagonal_slope(*block, terms,
                                  {view<Cplx>(total, 1), view<Cplx>(sx, 1), view<Cplx>(slope, 1)});
      else
        model->add_diagonal(*block, terms, {view<Cplx>(total, 1, 1), view<Cplx>(sx, 1, 1)});
    };
    cost.pole_energy_s = to_whole * seconds_when_warm(sum) / static_cast<double>(few);
  }
  if (frequencies || cohsex || s.exact_static_ch) {
    block->load(view<const Cplx>(sample, 1, few, order));
    const std::vector<Cplx> matrix(static_cast<std::size_t>(order * order), Cplx{1.0, 0.0});
    std::vector<Cplx> form(static_cast<std::size_t>(few));
    cost.form_s =
        seconds_when_warm([&] {
          block->quadratic_forms(view<const Cplx>(matrix, order, order), view<Cplx>(form, 1, few));
        }) *
        to_whole / static_cast<double>(few);
  }
  const GSphere bare = sphere_at(s.bare_cutoff_ry);
  const std::int64_t n_occupied = std::min(n_right, n_v);
  at = load_box(bare, n_occupied);
  std::vector<Cplx> products(static_cast<std::size_t>(n_occupied * bare.size()));
  double sum = 0.0;
  cost.bare_pair_s = seconds_when_warm([&] {
                       kernels.pair_products().fill(
                           {*at.left, {0, 1}}, {*at.right, {0, n_occupied}}, *at.sphere, *block);
                       block->read(view<Cplx>(products, 1, n_occupied, bare.size()));
                       for (const Cplx& m : products) sum += std::norm(m);
                     }) /
                     static_cast<double>(n_occupied);
  if (!(sum >= 0.0)) cost.bare_pair_s = 0.0;  // the sum must not be left out by the compiler
  return cost;
}

}  // namespace

void estimate_seconds(const MeanField& field, DeviceTeam& team, Plan* plan) {
  const UnitCosts cost = measure(field, *plan, team.first());
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
}

std::string cost_line(const Plan& plan) {
  constexpr double kGib = 1073741824.0;
  char line[200];
  std::snprintf(line, sizeof line,
                "estimate: ε %.3g s, Σ %.3g s, %.2f GiB of device memory and %.2f GiB of the "
                "host's for ε⁻¹ and W at most",
                plan.epsilon_seconds, plan.sigma_seconds,
                static_cast<double>(plan.memory_bytes) / kGib,
                static_cast<double>(plan.screening_bytes) / kGib);
  return line;
}

}  // namespace quasi::gw
