#include "workers/thermal/solver/renormalisation/self_consistent_phonons.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>

#include "workers/backend/anderson.hpp"
#include "workers/backend/error.hpp"
#include "workers/thermal/input/control/namelist_section.hpp"
#include "workers/thermal/physics/occupation.hpp"
#include "workers/thermal/solver/harmonic/canonical_vectors.hpp"
#include "workers/thermal/solver/harmonic/harmonic.hpp"
#include "workers/thermal/solver/renormalisation/half_mesh.hpp"
#include "workers/thermal/solver/renormalisation/rigid_shifts.hpp"
#include "workers/units/constants.hpp"

namespace quasi::thermal {
namespace {

using Complex64 = std::complex<double>;
using Block = std::array<double, 9>;
using PairKey = std::tuple<int, int, Index3>;

constexpr double kSmallestShare = 1e-3;     // modes below this share of ω_m are replaced
constexpr double kReplacementShare = 0.05;  // initial frequency of a replaced mode over ω_m
constexpr int kReplacementReductions = 4;
constexpr double kSmallestMixing = 0.01;
constexpr int kAndersonDepth = 5;
constexpr double kNear = 0.1;  // of the largest element of Φ₂: Anderson mixing begins below it
constexpr int kFallsBeforeFasterMixing = 20;

/// Returns the largest element of the second-order constants, (rad/ps)² amu.
double largest_element(const SecondOrder& constants) {
  double largest = 0.0;
  for (const double value : constants.value) largest = std::max(largest, std::fabs(value));
  for (const SecondOrder::Image& image : constants.images)
    for (const double value : image.value) largest = std::max(largest, std::fabs(value));
  return largest;
}

/// Iterates the constants of one temperature.
class SelfConsistentLoop {
 public:
  SelfConsistentLoop(const Crystal& crystal, const SecondOrder& bare,
                     const SparseForceConstants& fourth, const HarmonicOptions& harmonic,
                     const SelfConsistentOptions& options)
      : crystal_(crystal),
        fourth_(fourth),
        constants_(harmonic.constants),
        options_(options),
        mesh_(options.mesh),
        nb_(crystal.n_branches()),
        largest_ev_a2_(largest_element(bare) / harmonic.constants.ev_per_a2_amu_to_omega2) {
    const DynamicalMatrixBuilder builder(crystal, bare, harmonic);
    bare_.resize(static_cast<std::size_t>(mesh_.size()));
#pragma omp parallel for schedule(static)
    for (std::int64_t point = 0; point < mesh_.size(); ++point)
      bare_[point] = builder.at(mesh_.q(point), false).d;
    omega2_.resize(bare_.size() * nb_);
    vectors_.resize(bare_.size() * nb_ * nb_);
    find_pairs();
  }

  SelfConsistentConstants solve() {
    diagonalise();
    for (const double value : omega2_)
      if (!std::isinf(value)) omega_m_ = std::max(omega_m_, std::sqrt(std::fabs(value)));
    double mixing = options_.mixing;
    double share = kReplacementShare;
    int falls = 0;
    int reductions = 0;
    double last = INFINITY;
    for (result_.iterations = 1; result_.iterations <= options_.max_iterations;
         ++result_.iterations) {
      const int replaced = replace_soft_modes(share);
      result_.residual = step(mixing);
      diagonalise();
      if (result_.residual < options_.tolerance) {
        if (replaced == 0) return finish();
        if (reductions++ == kReplacementReductions) break;
        share /= 4.0;
        anderson_.forget();
      }
      if (result_.residual > last) {
        mixing = std::max(kSmallestMixing, 0.5 * mixing);
        anderson_.forget();
        falls = 0;
      } else if (++falls == kFallsBeforeFasterMixing) {
        mixing = std::min(options_.mixing, 1.5 * mixing);
        falls = 0;
      }
      last = result_.residual;
    }
    refuse_imaginary();
    throw NotConverged("self-consistent phonons at T = " + number_text(options_.temperature_k) +
                       " K: the largest relative change of a force constant is " +
                       number_text(result_.residual) + " after " +
                       std::to_string(options_.max_iterations) + " iterations and must be below " +
                       number_text(options_.tolerance) +
                       "; a fourth order that softens all modes has no bound at this temperature");
  }

 private:
  /// Lists the corrected pairs and the correlations that the blocks of fourth order need.
  void find_pairs() {
    std::map<PairKey, int> pairs;
    std::map<PairKey, int> correlations;
    const auto keys = [&](std::int64_t b) {
      const int* atom = &fourth_.atom[static_cast<std::size_t>(4 * b)];
      const int* cell = &fourth_.cell[static_cast<std::size_t>(9 * b)];
      return std::pair{
          PairKey{atom[0], atom[1], {cell[0], cell[1], cell[2]}},
          PairKey{atom[2], atom[3], {cell[3] - cell[6], cell[4] - cell[7], cell[5] - cell[8]}}};
    };
    for (std::int64_t b = 0; b < fourth_.n_blocks(); ++b) {
      const auto [pair, correlation] = keys(b);
      pairs.emplace(pair, 0);
      correlations.emplace(correlation, 0);
    }
    for (auto& [key, number] : pairs) {
      number = static_cast<int>(result_.correction.size());
      result_.correction.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), {}});
    }
    for (auto& [key, number] : correlations) {
      number = static_cast<int>(correlated_.size());
      correlated_.push_back(key);
    }
    for (std::int64_t b = 0; b < fourth_.n_blocks(); ++b) {
      const auto [pair, correlation] = keys(b);
      block_pair_.push_back(pairs[pair]);
      block_correlation_.push_back(correlations[correlation]);
    }
  }

  /// Adds the transform of the correction to D(q), [3κ+α][3κ'+β] in (rad/ps)².
  void add_correction(std::int64_t point, std::vector<Complex64>& d) const {
    for (const PairCorrection& pair : result_.correction) {
      const double masses = crystal_.mass_amu[pair.atom] * crystal_.mass_amu[pair.other];
      const Complex64 wave =
          constants_.ev_per_a2_amu_to_omega2 / std::sqrt(masses) * mesh_.wave(point, pair.cell);
      for (int a = 0; a < 3; ++a)
        for (int b = 0; b < 3; ++b)
          d[(3 * pair.atom + a) * nb_ + 3 * pair.other + b] += wave * pair.value_ev_a2[a * 3 + b];
    }
  }

  void diagonalise() {
#pragma omp parallel for schedule(static)
    for (std::int64_t point = 0; point < mesh_.size(); ++point) {
      std::vector<Complex64> d = bare_[point];
      add_correction(point, d);
      diagonalise_hermitian(nb_, d, &omega2_[point * nb_], &vectors_[point * nb_ * nb_]);
    }
    leave_out_translations();
  }

  /// Marks the three translations at Γ by ω² = ∞. Their amplitude is then zero.
  void leave_out_translations() {
    for (const int s : rigid_shifts(crystal_, vectors_.data())) omega2_[s] = INFINITY;
  }

  /// Replaces ω² of imaginary and very soft modes and returns their number.
  int replace_soft_modes(double share) {
    int replaced = 0;
    const double smallest = std::pow(kSmallestShare * omega_m_, 2);
    for (double& value : omega2_)
      if (value < smallest) {
        value = std::pow(share * omega_m_, 2);
        ++replaced;
      }
    return replaced;
  }

  /// Returns Σ_s ħ(2n+1)/2ω e e† of every point, [point][3κ+α][3κ'+β] in Å² amu.
  std::vector<Complex64> displacements() const {
    std::vector<Complex64> sums(bare_.size() * nb_ * nb_);
#pragma omp parallel for schedule(static)
    for (std::int64_t point = 0; point < mesh_.size(); ++point) {
      Complex64* const sum = &sums[point * nb_ * nb_];
      for (int s = 0; s < nb_; ++s) {
        const double amplitude = mean_square_amplitude(omega2_[point * nb_ + s]);
        const Complex64* const e = &vectors_[(point * nb_ + s) * nb_];
        for (int i = 0; i < nb_; ++i)
          for (int j = 0; j < nb_; ++j) sum[i * nb_ + j] += amplitude * e[i] * std::conj(e[j]);
      }
    }
    return sums;
  }

  /// Returns ⟨u_κα(R) u_κ'β(0)⟩ in Å², [α][β].
  /// @param displacement  displacements()
  Block correlation(const PairKey& key, const std::vector<Complex64>& displacement) const {
    const auto& [atom, other, cell] = key;
    Block sum{};
    for (std::int64_t point = 0; point < mesh_.size(); ++point) {
      const Complex64 wave = mesh_.weight(point) * mesh_.wave(point, cell);
      const Complex64* const first = &displacement[(point * nb_ + 3 * atom) * nb_ + 3 * other];
      for (int a = 0; a < 3; ++a)
        for (int b = 0; b < 3; ++b) sum[a * 3 + b] += std::real(first[a * nb_ + b] * wave);
    }
    const double factor = 1.0 / (std::sqrt(crystal_.mass_amu[atom] * crystal_.mass_amu[other]) *
                                 static_cast<double>(options_.mesh.size()));
    for (double& value : sum) value *= factor;
    return sum;
  }

  /// Returns ħ(2n+1)/2ω in Å² amu.
  double mean_square_amplitude(double omega2) const {
    if (std::isinf(omega2)) return 0.0;
    const double omega = std::sqrt(omega2);
    const double n = options_.temperature_k > 0.0 ? bose_einstein(omega, options_.temperature_k,
                                                                  constants_.hbar_over_kb_k_ps())
                                                  : 0.0;
    const double hbar_a2_amu_per_ps =
        constants_.hbar_1e34_j_s / (units::kAtomicMass_kg * 1e27) * 10.0;
    return 0.5 * hbar_a2_amu_per_ps * (2.0 * n + 1.0) / omega;
  }

  /// Moves the correction towards ½ Σ Φ₄ ⟨uu⟩. Returns the largest relative distance from it.
  double step(double mixing) {
    const std::vector<Complex64> displacement = displacements();
    std::vector<Block> correlations(correlated_.size());
#pragma omp parallel for schedule(dynamic)
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(correlated_.size()); ++i)
      correlations[i] = correlation(correlated_[i], displacement);
    std::vector<Block> target(result_.correction.size(), Block{});
    for (std::int64_t b = 0; b < fourth_.n_blocks(); ++b)
      for (int pair = 0; pair < 9; ++pair)
        for (int e = 0; e < 9; ++e)
          target[block_pair_[b]][pair] += 0.5 *
                                          fourth_.tensor[static_cast<std::size_t>(81 * b) +
                                                         static_cast<std::size_t>(9 * pair + e)] *
                                          correlations[block_correlation_[b]][e];
    double largest = 0.0;
    std::vector<double> from, image;
    for (std::size_t p = 0; p < target.size(); ++p)
      for (int e = 0; e < 9; ++e) {
        from.push_back(result_.correction[p].value_ev_a2[e]);
        const double change = target[p][e] - from.back();
        largest = std::max(largest, std::fabs(change));
        image.push_back(from.back() + mixing * change);
      }
    const bool near = largest < kNear * largest_ev_a2_;
    if (!near) anderson_.forget();
    const std::vector<double> next = near ? anderson_.next(from, image) : image;
    for (std::size_t at = 0; at < next.size(); ++at)
      result_.correction[at / 9].value_ev_a2[at % 9] = next[at];
    return largest / largest_ev_a2_;
  }

  SelfConsistentConstants finish() {
    refuse_imaginary();
    return std::move(result_);
  }

  /// @throws InvalidInput for a mode with ω² < 0.
  void refuse_imaginary() const {
    const auto lowest = std::min_element(omega2_.begin(), omega2_.end());
    if (*lowest >= 0.0) return;
    const Vec3 q = mesh_.q((lowest - omega2_.begin()) / nb_);
    throw InvalidInput("at T = " + number_text(options_.temperature_k) +
                       " K the crystal stays unstable within first-order self-consistent phonons: "
                       "ω = " +
                       number_text(std::sqrt(-*lowest)) + "i rad/ps at q = (" + number_text(q[0]) +
                       ", " + number_text(q[1]) + ", " + number_text(q[2]) +
                       "), and ω² must not be negative; raise the "
                       "temperature or give the constants of the stable structure");
  }

  const Crystal& crystal_;
  const SparseForceConstants& fourth_;
  const PhysicalConstants& constants_;
  const SelfConsistentOptions& options_;
  HalfMesh mesh_;
  int nb_;
  double largest_ev_a2_;
  double omega_m_ = 0.0;                      ///< largest |ω| of the bare modes, rad/ps
  std::vector<std::vector<Complex64>> bare_;  ///< [point] D(q) of Φ₂
  std::vector<double> omega2_;                ///< [point][branch] (rad/ps)²
  std::vector<Complex64> vectors_;            ///< [point][branch][3κ+α]
  std::vector<PairKey> correlated_;           ///< atoms of slots 3 and 4, and R_3 − R_4
  std::vector<int> block_pair_;               ///< [block] number in result_.correction
  std::vector<int> block_correlation_;        ///< [block] number in correlated_
  AndersonMixing anderson_{kAndersonDepth};
  SelfConsistentConstants result_;
};

void check_options(const SparseForceConstants& fourth, const SelfConsistentOptions& options) {
  if (fourth.order != 4)
    throw InvalidInput("self-consistent phonons need constants of order 4, and these have order " +
                       std::to_string(fourth.order));
  const auto require = [](bool holds, const std::string& field, double value,
                          const std::string& limit) {
    if (!holds)
      throw InvalidInput("self-consistent phonons: '" + field + "' is " + number_text(value) +
                         "; give " + limit);
  };
  require(options.temperature_k >= 0.0, "temperature_k", options.temperature_k, "at least 0");
  require(options.mixing > 0.0 && options.mixing <= 1.0, "mixing", options.mixing,
          "a share above 0 and at most 1");
  require(options.tolerance > 0.0, "tolerance", options.tolerance, "a positive number");
  require(options.max_iterations >= 1, "max_iterations", options.max_iterations, "at least 1");
  for (const int divisions : options.mesh.n)
    require(divisions >= 1, "mesh", divisions, "at least 1 division on each axis");
}

}  // namespace

SecondOrder with_correction(SecondOrder bare, const std::vector<PairCorrection>& correction,
                            const PhysicalConstants& constants) {
  // An image holds its first atom in `cell` and its second in the origin cell, and a correction
  // the other way round.
  for (const PairCorrection& pair : correction) {
    SecondOrder::Image image{.atom = pair.atom,
                             .other = pair.other,
                             .cell = {-pair.cell[0], -pair.cell[1], -pair.cell[2]},
                             .weight = 1.0,
                             .value = pair.value_ev_a2};
    for (double& value : image.value) value *= constants.ev_per_a2_amu_to_omega2;
    bare.correction.push_back(image);
  }
  return bare;
}

SelfConsistentConstants solve_self_consistent(const Crystal& crystal, const SecondOrder& bare,
                                              const SparseForceConstants& fourth,
                                              const HarmonicOptions& harmonic,
                                              const SelfConsistentOptions& options) {
  check_options(fourth, options);
  return SelfConsistentLoop(crystal, bare, fourth, harmonic, options).solve();
}

}  // namespace quasi::thermal
