#pragma once

#include <cstdint>

#include "workers/backend/host_device.hpp"

namespace quasi::thermal {

/// Indices of the sums over uniform draws of one row and channel (docs/theory/thermal.md 10). Each
/// temperature has Σy, Σy of normal processes, Σy² and Σ m W, with y = m W|V|², which is zero for a
/// tuple that is not a process. Then follow Σ m δ, 6 Σ m and the number of matrix elements
/// evaluated.
struct UniformLayout {
  int n_temperatures;
  QUASI_HD int rate(int t) const { return 4 * t; }
  QUASI_HD int normal(int t) const { return 4 * t + 1; }
  QUASI_HD int square(int t) const { return 4 * t + 2; }
  QUASI_HD int weighted_phase_space(int t) const { return 4 * t + 3; }
  QUASI_HD int phase_space() const { return 4 * n_temperatures; }
  QUASI_HD int six_count() const { return 4 * n_temperatures + 1; }
  QUASI_HD int evaluations() const { return 4 * n_temperatures + 2; }
  QUASI_HD int size() const { return 4 * n_temperatures + 3; }
};

/// Indices of the sums over processes of which some are drawn, with a probability p that grows with
/// a weight u ≥ 0 (docs/theory/thermal.md 10). W contains the multiplicity m, and y = W|V|². Each
/// temperature has Σ u/p of drawn processes, ΣW of all, and of drawn ones Σ y/p, its normal part
/// and Σ (1−p)/p² of y², yu and u². Then follow Σ m δ and 6 Σ m of all processes and the number of
/// matrix elements evaluated.
struct ThinnedLayout {
  int n_temperatures;
  QUASI_HD int weight(int t) const { return 7 * t; }
  QUASI_HD int weighted_phase_space(int t) const { return 7 * t + 1; }
  QUASI_HD int rate(int t) const { return 7 * t + 2; }
  QUASI_HD int normal(int t) const { return 7 * t + 3; }
  QUASI_HD int spread_rate(int t) const { return 7 * t + 4; }
  QUASI_HD int spread_both(int t) const { return 7 * t + 5; }
  QUASI_HD int spread_weight(int t) const { return 7 * t + 6; }
  QUASI_HD int phase_space() const { return 7 * n_temperatures; }
  QUASI_HD int six_count() const { return 7 * n_temperatures + 1; }
  QUASI_HD int evaluations() const { return 7 * n_temperatures + 2; }
  QUASI_HD int size() const { return 7 * n_temperatures + 3; }
};

/// A process in the sums of a thinned sample at one temperature.
struct ThinnedTerm {
  double probability;           ///< p with which it was drawn; 0: it was not drawn
  double weighted_phase_space;  ///< W, with its multiplicity
  double draw_weight;           ///< u, to which p is proportional
  double squared;               ///< |V|² of a drawn process
  bool normal;                  ///< the process is not an Umklapp process
  bool weights_only;  ///< Σu over all processes is requested instead of Σ u/p over drawn ones
};

/// Adds a process to the sums of one temperature (ThinnedLayout) through add(slot, value).
template <typename Add>
QUASI_HD inline void add_thinned_at(const ThinnedLayout& layout, int temperature,
                                    const ThinnedTerm& term, const Add& add) {
  const double p = term.probability;
  const double u = term.draw_weight;
  const double inverse = p > 0.0 ? 1.0 / p : 0.0;
  const double spread = (inverse - 1.0) * inverse;
  const double y = term.weighted_phase_space * term.squared;
  add(layout.weight(temperature), term.weights_only ? u : u * inverse);
  add(layout.weighted_phase_space(temperature), term.weighted_phase_space);
  add(layout.rate(temperature), y * inverse);
  add(layout.normal(temperature), term.normal ? y * inverse : 0.0);
  add(layout.spread_rate(temperature), p > 0.0 ? spread * y * y : 0.0);
  add(layout.spread_both(temperature), p > 0.0 ? spread * y * u : 0.0);
  add(layout.spread_weight(temperature), p > 0.0 ? spread * u * u : 0.0);
}

/// Adds the chunks of each sum in their order; index is the number of the sum.
struct AddChunks {
  const double* sums;  ///< [..][chunks][size]
  int chunks;
  int size;
  double* total;  ///< [..][size]

  QUASI_HD void operator()(std::int64_t index) const {
    for (int i = 0; i < size; ++i) {
      double value = 0.0;
      for (int chunk = 0; chunk < chunks; ++chunk)
        value += sums[(index * chunks + chunk) * size + i];
      total[index * size + i] = value;
    }
  }
};

}  // namespace quasi::thermal
