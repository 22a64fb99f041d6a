#include "workers/thermal/solver/renormalisation/self_consistent_phonons.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "workers/backend/anderson.hpp"
#include "workers/backend/error.hpp"
#include "workers/thermal/input/control/namelist_section.hpp"
#include "workers/thermal/physics/occupation.hpp"
#include "workers/thermal/solver/renormalisation/half_mesh.hpp"
#include "workers/thermal/solver/renormalisation/rigid_shifts.hpp"
#include "workers/thermal/solver/renormalisation/self_consistency_problem.hpp"
#include "workers/units/constants.hpp"

namespace quasi::thermal {
namespace {

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

/// Inputs of the iteration at one temperature.
struct IterationInputs {
  const Crystal& crystal;
  const PhysicalConstants& constants;
  const SelfConsistentOptions& options;
  double temperature_k;
  double largest_ev_a2;  ///< largest element of Φ₂
};

/// Iterates the constants of one temperature.
class SelfConsistentLoop {
 public:
  /// @param kernels  loaded
  SelfConsistentLoop(const IterationInputs& inputs, const std::vector<PairCorrection>& pairs,
                     SelfConsistencyKernels& kernels)
      : at_(inputs),
        options_(inputs.options),
        kernels_(kernels),
        nb_(inputs.crystal.n_branches()),
        correction_(9 * pairs.size(), 0.0) {
    result_.correction = pairs;
    result_.memory_bytes = kernels.memory_bytes();
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
    throw NotConverged("self-consistent phonons at T = " + number_text(at_.temperature_k) +
                       " K: the largest relative change of a force constant is " +
                       number_text(result_.residual) + " after " +
                       std::to_string(options_.max_iterations) + " iterations and must be below " +
                       number_text(options_.tolerance) +
                       "; a fourth order that softens all modes has no bound at this temperature");
  }

 private:
  /// Computes ω² and marks the three translations at Γ by ω² = ∞. Their amplitude is then
  /// zero.
  void diagonalise() {
    const MeshModes modes = kernels_.diagonalise(correction_);
    omega2_ = modes.omega2;
    for (const int s : rigid_shifts(at_.crystal, modes.gamma_vectors.data()))
      omega2_[static_cast<std::size_t>(s)] = INFINITY;
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

  /// Returns ħ(2n+1)/2ω in Å² amu.
  double mean_square_amplitude(double omega2) const {
    if (std::isinf(omega2)) return 0.0;
    const double omega = std::sqrt(omega2);
    const double n = at_.temperature_k > 0.0 ? bose_einstein(omega, at_.temperature_k,
                                                             at_.constants.hbar_over_kb_k_ps())
                                             : 0.0;
    const double hbar_a2_amu_per_ps =
        at_.constants.hbar_1e34_j_s / (units::kAtomicMass_kg * 1e27) * 10.0;
    return 0.5 * hbar_a2_amu_per_ps * (2.0 * n + 1.0) / omega;
  }

  /// Moves the correction towards ½ Σ Φ₄ ⟨uu⟩. Returns the largest relative distance from it.
  double step(double mixing) {
    std::vector<double> amplitude(omega2_.size());
    for (std::size_t mode = 0; mode < omega2_.size(); ++mode)
      amplitude[mode] = mean_square_amplitude(omega2_[mode]);
    const std::vector<double> target = kernels_.contract(amplitude);
    double largest = 0.0;
    std::vector<double> image;
    for (std::size_t e = 0; e < target.size(); ++e) {
      const double change = target[e] - correction_[e];
      largest = std::max(largest, std::fabs(change));
      image.push_back(correction_[e] + mixing * change);
    }
    const bool near = largest < kNear * at_.largest_ev_a2;
    if (!near) anderson_.forget();
    correction_ = near ? anderson_.next(correction_, image) : image;
    return largest / at_.largest_ev_a2;
  }

  SelfConsistentConstants finish() {
    refuse_imaginary();
    for (std::size_t e = 0; e < correction_.size(); ++e)
      result_.correction[e / 9].value_ev_a2[e % 9] = correction_[e];
    return std::move(result_);
  }

  /// @throws InvalidInput for a mode with ω² < 0.
  void refuse_imaginary() const {
    const auto lowest = std::min_element(omega2_.begin(), omega2_.end());
    if (*lowest >= 0.0) return;
    const Vec3 q = HalfMesh(options_.mesh).q((lowest - omega2_.begin()) / nb_);
    throw InvalidInput("at T = " + number_text(at_.temperature_k) +
                       " K the crystal stays unstable within first-order self-consistent phonons: "
                       "ω = " +
                       number_text(std::sqrt(-*lowest)) + "i rad/ps at q = (" + number_text(q[0]) +
                       ", " + number_text(q[1]) + ", " + number_text(q[2]) +
                       "), and ω² must not be negative; raise the "
                       "temperature or give the constants of the stable structure");
  }

  const IterationInputs& at_;
  const SelfConsistentOptions& options_;
  SelfConsistencyKernels& kernels_;
  int nb_;
  double omega_m_ = 0.0;            ///< largest |ω| of the bare modes, rad/ps
  std::vector<double> omega2_;      ///< [point][branch] (rad/ps)²
  std::vector<double> correction_;  ///< [pair][9] eV/Å²
  AndersonMixing anderson_{kAndersonDepth};
  SelfConsistentConstants result_;
};

void require(bool holds, const std::string& field, double value, const std::string& limit) {
  if (!holds)
    throw InvalidInput("self-consistent phonons: '" + field + "' is " + number_text(value) +
                       "; give " + limit);
}

void check_options(const SparseForceConstants& fourth, const SelfConsistentOptions& options) {
  if (fourth.order != 4)
    throw InvalidInput("self-consistent phonons need constants of order 4, and these have order " +
                       std::to_string(fourth.order));
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

SelfConsistentPhonons::SelfConsistentPhonons(const Crystal& crystal, const SecondOrder& bare,
                                             const SparseForceConstants& fourth,
                                             const HarmonicOptions& harmonic,
                                             const SelfConsistentOptions& options,
                                             const Device& device)
    : crystal_(crystal),
      constants_(harmonic.constants),
      options_(options),
      device_(device),
      largest_ev_a2_(largest_element(bare) / harmonic.constants.ev_per_a2_amu_to_omega2) {
  check_options(fourth, options);
  problem_ = make_self_consistency_problem(crystal, bare, fourth, harmonic, options.mesh, pairs_);
}

SelfConsistentConstants SelfConsistentPhonons::solve(double temperature_k) const {
  require(temperature_k >= 0.0, "temperature_k", temperature_k, "at least 0");
  const auto kernels = make_self_consistency_kernels(device_);
  kernels->load(problem_);
  const IterationInputs inputs{crystal_, constants_, options_, temperature_k, largest_ev_a2_};
  return SelfConsistentLoop(inputs, pairs_, *kernels).solve();
}

}  // namespace quasi::thermal
