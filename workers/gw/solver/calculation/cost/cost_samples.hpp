#pragma once

#include <cstdint>
#include <memory>

#include "workers/gw/kernels/gw_kernels.hpp"
#include "workers/gw/solver/calculation/plan.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"
#include "workers/gw/solver/step_times.hpp"

namespace quasi::gw {

/// Holds the seconds of one unit of each kind of work on one device.
struct UnitCosts {
  double chi_pair_s = 0.0;        ///< a pair of bands of a static χ: its product and its addition
  double pair_s = 0.0;            ///< a pair product on the ε sphere
  double frequency_pair_s = 0.0;  ///< a pair added to χ at one more frequency
  double inversion_s = 0.0;       ///< an inversion of a matrix of the largest order
  double pole_energy_s = 0.0;     ///< a pair and energy of the plasmon-pole sum
  double response_s = 0.0;        ///< a pair of the response of Σ; 0 if the job has none
  double form_s = 0.0;            ///< a quadratic form
  double closed_form_s = 0.0;     ///< a quadratic form of the closed sum
  double bare_pair_s = 0.0;       ///< a pair product on the bare sphere and its norm
  double load_s = 0.0;            ///< a band that a device takes and transforms to the box
  /// Matrix elements of ∂H/∂k of all pairs at one k; 0: q → 0 comes from other states.
  double velocity_s = 0.0;
};

/// Returns true if Σ comes from the sum over bands that gives its error bars.
inline bool sums_once(const Plan& plan) {
  return plan.error_bars.blocks > 0 && plan.error_bars.first_order &&
         plan.sigma.offsets_ry.size() == 1;
}

/// Holds the sampled bands of both sides at Γ and a sphere of plane waves on a device.
struct SampleOnDevice {
  std::unique_ptr<const LoadedBands> left, right;
  std::unique_ptr<const LoadedSphere> sphere;
};

/// Measures the costs of one device on a few pairs of the job's own states.
class CostSamples {
 public:
  /// Loads the samples to the device of `kernels`. References to all arguments are kept.
  CostSamples(const MeanField& field, const Plan& plan, GwKernels& kernels);
  /// Runs and times one sample of every kind of work that the plan contains.
  /// @param times  gets the seconds that the samples themselves take
  UnitCosts measure(StepTimes& times);

 private:
  GSphere sphere_at(double cutoff_ry) const;
  SampleOnDevice load_sample(const GSphere& sphere, std::int64_t right_bands) const;
  void fill_pairs();
  double load_seconds();
  double velocity_seconds();
  double chi_pair_seconds();
  double frequency_pair_seconds();
  /// Returns the seconds of the inversion of one matrix of an order, with transfers.
  double inversion_seconds_of(std::int64_t order);
  double inversion_seconds();
  double pole_energy_seconds();
  double response_seconds();
  /// Returns the seconds of the response of `n_left` outer states with `few` bands.
  double seconds_of_response(std::int64_t n_left, std::int64_t few);
  double form_seconds();
  double closed_form_seconds();
  double bare_pair_seconds();

  /// Returns the number of pairs of the timed sums over G and G'.
  std::int64_t sum_pairs() const;
  /// Returns the number of plane waves of the timed sums over G and G'.
  std::int64_t sum_order() const;
  /// Returns the seconds of one pair on the whole sphere from those of all sampled pairs on a part
  /// of it.
  double scaled_to_sphere(double seconds) const;
  /// Loads products of sampled pairs, which are real where those of the job are.
  void load_sum_sample() { load_sum_sample(1, sum_pairs()); }
  void load_sum_sample(std::int64_t n_left, std::int64_t n_right);
  /// Loads a model with equal elements.
  std::shared_ptr<const LoadedPoleModel> load_model();
  /// Returns the mean number of consecutive bands with equal energies among [first, end), counted
  /// from 0, at the first k-point.
  std::int64_t mean_run(std::int64_t first, std::int64_t end) const;
  /// Returns the number of occupied bands among the first `n_bands` sampled bands of Σ.
  std::int64_t occupied_of(std::int64_t n_bands) const;

  const MeanField& field_;
  const Plan& plan_;
  GwKernels& kernels_;
  bool on_device_;
  std::int64_t n_occupied_, n_left_, n_right_;
  GSphere screened_;
  SampleOnDevice screened_sample_;
  std::unique_ptr<PairBlock> block_;
  double product_s_ = 0.0;  ///< seconds of adding the product of a pair to χ
};

}  // namespace quasi::gw
