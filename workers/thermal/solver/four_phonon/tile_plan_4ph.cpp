#include "workers/thermal/solver/four_phonon/tile_plan_4ph.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "workers/thermal/kernels/four_phonon/exchange_4ph.hpp"
#include "workers/thermal/kernels/four_phonon/pair_key_4ph.hpp"

namespace quasi::thermal {

namespace {

// Costs beside the multiply-adds of a matrix element and of the contraction with λ', in complex
// multiply-adds; from the times of the parts on one H200 (docs/performance/README.md).
constexpr double kPerProcess = 250.0;  ///< test, width, δ, Bose factors, sums
constexpr double kPerPair = 150.0;     ///< sorting and filling the table of last pairs

constexpr int kBins = 256;
constexpr std::int64_t kPointsSampled = 64;   ///< q'' of a histogram
constexpr std::int64_t kQueriesSampled = 48;  ///< (point, q') of a sign looked up, of a star

/// Number and widths of the last pairs of one total momentum and kind, by energy.
struct PairDensity {
  double count[kBins] = {};
  // Sums over the pairs of their own σ/sb; in the symmetric kind of their part of 36(σ/sb)², its
  // square, and |Σp|².
  double width[kBins] = {};
  double width_squared[kBins] = {};
  double sum_squared[kBins] = {};
};

/// Stride through n points that takes about `wanted` of them. It shares no factor with n, so that
/// the points are spread evenly over every axis of a mesh.
std::int64_t stride_for(std::int64_t n, std::int64_t wanted) {
  std::int64_t stride = std::max<std::int64_t>(1, n / wanted);
  while (std::gcd(stride, n) != 1) ++stride;
  return stride;
}

class Predictor {
 public:
  explicit Predictor(const Problem4ph& problem)
      : t_(host_tables(problem)), symmetric_(problem.rules.broadening == Broadening::kSymmetric) {
    for (std::int64_t m = 0; m < t_.n_modes(); ++m) top_ = std::max(top_, t_.omega[m]);
    if (!(top_ > 0.0)) top_ = 1.0;
    width_of_bin_ = 2.0 * top_ / kBins;
  }

  struct Prediction {
    double processes = 0.0;
    double visits = 0.0;  ///< (row, q') with any process
  };

  /// Predicts the work of the total momenta [first, last) of one star.
  Prediction of_star(std::int32_t first, std::int32_t last) const {
    PairDensity density[2];
    for (const auto kind : {PairKind4ph::kDifference, PairKind4ph::kSum})
      fill(kind, t_.representative_of(t_.star_at(first)), density[static_cast<int>(kind)]);
    Prediction sum;
    for (const int sign : {1, -1}) {
      if (t_.exchange && sign < 0) continue;
      std::vector<std::pair<std::int32_t, std::int32_t>> active;
      for (std::int32_t place = first; place < last; ++place)
        for (std::int32_t point = 0; point < t_.n_points; ++point) {
          const std::int32_t total = t_.total_at(place);
          const std::int32_t q0 = t_.point[point];
          const std::int32_t q1 =
              sign > 0 ? t_.mesh.add(total, q0, -1) : t_.mesh.add(q0, total, -1);
          if (visit_4ph(t_, sign, point, q1) != Visit4ph::kNone) active.emplace_back(q0, q1);
        }
      if (active.empty()) continue;
      const std::size_t stride = std::max<std::size_t>(1, active.size() / kQueriesSampled);
      std::size_t sampled = 0;
      Prediction of_sample;
      for (std::size_t i = stride / 2; i < active.size(); i += stride, ++sampled)
        look_up(sign, active[i].first, active[i].second, density, of_sample);
      const double scale = static_cast<double>(active.size()) / static_cast<double>(sampled);
      sum.processes += scale * of_sample.processes;
      sum.visits += scale * of_sample.visits;
    }
    return sum;
  }

  /// Cost of a star with these processes, in complex multiply-adds.
  double work(const Prediction& p) const {
    const double nb = t_.n_branches;
    return p.processes * (12.0 * t_.n_pairs + 3.0 * t_.n_atoms + kPerProcess) +
           p.visits * 27.0 * t_.n_triples * (nb + 1.0) +
           2.0 * static_cast<double>(t_.mesh.size()) * nb * nb * kPerPair;
  }

 private:
  int bin_of(PairKind4ph kind, double energy) const {
    const double step = (energy + (kind == PairKind4ph::kDifference ? top_ : 0.0)) / width_of_bin_;
    return !(step >= 0.0) || step >= kBins ? -1 : static_cast<int>(step);
  }

  void fill(PairKind4ph kind, std::int32_t total, PairDensity& density) const {
    const int nb = t_.n_branches;
    const std::int64_t n = t_.mesh.size();
    const std::int64_t points = std::min(n, kPointsSampled);
    const std::int64_t stride = points == n ? 1 : stride_for(n, kPointsSampled);
    // The table of a sum holds each unordered pair once.
    const double weight = static_cast<double>(n) / static_cast<double>(points) *
                          (kind == PairKind4ph::kSum ? 0.5 : 1.0);
    for (std::int64_t i = 0; i < points; ++i) {
      const std::int64_t q2 = i * stride % n;
      const std::int32_t q3 = t_.mesh.add(total, q2, kind == PairKind4ph::kSum ? -1 : 1);
      for (int s2 = 0; s2 < nb; ++s2)
        for (int s3 = 0; s3 < nb; ++s3) {
          const auto mode2 = static_cast<std::int32_t>(q2 * nb + s2);
          const std::int32_t mode3 = q3 * nb + s3;
          const double w2 = t_.omega[mode2];
          const double w3 = t_.omega[mode3];
          if (!(w2 > 0.0) || !(w3 > 0.0)) continue;
          const int bin = bin_of(kind, kind == PairKind4ph::kSum ? w2 + w3 : w3 - w2);
          if (bin < 0) continue;
          const double* p2 = t_.p(mode2);
          const double* p3 = t_.p(mode3);
          density.count[bin] += weight;
          if (!symmetric_) {
            density.width[bin] +=
                weight * std::sqrt(pair_width_squared(t_.rules.broadening, p2, p3));
            continue;
          }
          const SpreadSums sums = spread_sums(p2, p3);
          const double width = 4.0 * sums.square - squared(sums.sum);
          density.width[bin] += weight * width;
          density.width_squared[bin] += weight * width * width;
          density.sum_squared[bin] += weight * squared(sums.sum);
        }
    }
  }

  static double squared(const Spread& p) { return p.x * p.x + p.y * p.y + p.z * p.z; }

  /// Half the window of a query, averaged over the pairs of a bin. The directions of the two pairs'
  /// p are taken as independent, and the mean root as that of a narrow distribution: √m (1 −
  /// variance/8m²).
  double window(const double* p0, const double* p1, const PairDensity& d, int bin) const {
    const double n = d.count[bin];
    double sigma = d.width[bin] / n;
    if (symmetric_) {
      const SpreadSums first = spread_sums(p0, p1);
      const double mean = 4.0 * first.square - squared(first.sum) + d.width[bin] / n;
      const double variance =
          std::max(0.0, d.width_squared[bin] / n - d.width[bin] / n * (d.width[bin] / n)) +
          4.0 / 3.0 * squared(first.sum) * d.sum_squared[bin] / n;
      sigma = mean > 0.0
                  ? std::sqrt(mean / 36.0) * std::max(0.5, 1.0 - variance / (8.0 * mean * mean))
                  : 0.0;
    }
    sigma *= t_.rules.scale_broad;
    if (t_.rules.sigma_at_floor_rad_ps == 0.0) sigma = std::max(sigma, t_.rules.sigma_floor_rad_ps);
    return std::max(t_.rules.cut * sigma, t_.rules.tie_tolerance_rad_ps);
  }

  /// Predicts the share of the processes of λ and λ' that are enumerated from this pair
  /// (quartet_share_4ph). It assumes that ω'' is evenly spread over its range.
  /// @param energy  ω ± ω'
  double share_visited(Channel4ph channel, double omega0, double omega1, double energy) const {
    const double low = std::min(omega0, omega1), high = std::max(omega0, omega1);
    if (t_.exchange && channel == Channel4ph::kRecombination)
      return energy < top_ ? std::clamp((top_ - energy - high) / (top_ - energy), 0.0, 1.0) : 0.0;
    if (t_.exchange && channel == Channel4ph::kRedistribution) {
      const double least = std::max(0.0, energy - top_), most = std::min(energy, top_);
      return most > least ? std::clamp((energy - 2.0 * low) / (most - least), 0.0, 1.0) : 0.0;
    }
    // Without exact weights an unordered tuple is taken once: of ++ a half, of -- a third of the
    // table's.
    if (t_.rules.exact_weights || channel == Channel4ph::kRedistribution) return 1.0;
    return channel == Channel4ph::kRecombination ? 0.5 : 1.0 / 3.0;
  }

  void look_up(int sign, std::int32_t q0, std::int32_t q1, const PairDensity* density,
               Prediction& sum) const {
    const int nb = t_.n_branches;
    for (int s0 = 0; s0 < nb; ++s0) {
      const std::int32_t mode0 = q0 * nb + s0;
      if (!(t_.omega[mode0] > 0.0)) continue;
      double found = 0.0;
      for (int s1 = 0; s1 < nb; ++s1) {
        const std::int32_t mode1 = q1 * nb + s1;
        if (!(t_.omega[mode1] > 0.0)) continue;
        const double energy = t_.omega[mode0] + sign * t_.omega[mode1];
        for (int c = 0; c < kChannels4ph; ++c) {
          const auto channel = static_cast<Channel4ph>(c);
          if (sign_second(channel) != sign) continue;
          const auto kind = sign_third(channel) < 0 ? PairKind4ph::kSum : PairKind4ph::kDifference;
          const int bin = bin_of(kind, energy);
          if (bin < 0) continue;
          const PairDensity& d = density[static_cast<int>(kind)];
          if (d.count[bin] == 0.0) continue;
          found += share_visited(channel, t_.omega[mode0], t_.omega[mode1], energy) * d.count[bin] *
                   2.0 * window(t_.p(mode0), t_.p(mode1), d, bin) / width_of_bin_;
        }
      }
      sum.processes += found;
      sum.visits += std::min(1.0, found);
    }
  }

  Tables4ph t_;
  bool symmetric_;
  double top_ = 0.0;
  double width_of_bin_ = 1.0;
};

}  // namespace

std::int64_t TilePlan4ph::progress(std::int64_t place) const {
  if (place >= size()) return kProgressUnits;
  return static_cast<std::int64_t>(work_before[static_cast<std::size_t>(place)] /
                                   work_before.back() * static_cast<double>(kProgressUnits));
}

std::vector<std::int32_t> tile_bounds_4ph(const Problem4ph& problem) {
  const auto n = static_cast<std::int32_t>(problem.mesh.size());
  const Tables4ph t = host_tables(problem);
  std::vector<std::int32_t> bound{0};
  for (std::int32_t place = 1; place < n; ++place)
    if (place - bound.back() >= kTotalsPerTile4ph && t.star_at(place) != t.star_at(place - 1))
      bound.push_back(place);
  bound.push_back(n);
  return bound;
}

TilePlan4ph plan_tiles_4ph(const Problem4ph& problem) {
  const Predictor predictor(problem);
  const Tables4ph t = host_tables(problem);
  TilePlan4ph plan;
  plan.bound = tile_bounds_4ph(problem);
  const std::size_t n_tiles = plan.bound.size() - 1;
  std::vector<double> work(n_tiles), processes(n_tiles);
#pragma omp parallel for schedule(dynamic, 1)
  for (std::size_t tile = 0; tile < n_tiles; ++tile) {
    for (std::int32_t first = plan.bound[tile], last = first; first < plan.bound[tile + 1];
         first = last) {
      while (last < plan.bound[tile + 1] && t.star_at(last) == t.star_at(first)) ++last;
      const Predictor::Prediction p = predictor.of_star(first, last);
      work[tile] += predictor.work(p);
      processes[tile] += p.processes;
    }
  }
  plan.tile.resize(n_tiles);
  std::iota(plan.tile.begin(), plan.tile.end(), 0);
  std::stable_sort(plan.tile.begin(), plan.tile.end(), [&](std::int32_t a, std::int32_t b) {
    return work[static_cast<std::size_t>(a)] > work[static_cast<std::size_t>(b)];
  });
  plan.work_before.push_back(0.0);
  for (const std::int32_t tile : plan.tile) {
    plan.work_before.push_back(plan.work_before.back() + work[static_cast<std::size_t>(tile)]);
    plan.processes.push_back(processes[static_cast<std::size_t>(tile)]);
  }
  return plan;
}

}  // namespace quasi::thermal
