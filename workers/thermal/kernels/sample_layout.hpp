#pragma once

#include <cstdint>

#include "workers/backend/host_device.hpp"

namespace quasi::thermal {

/// Sums over uniform draws of one row and channel: for each temperature Σy, Σy of normal processes,
/// Σy² (y = m W|V|², zero for what is no process), Σ m W; then Σ m δ, 6 Σ m, matrix elements
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

/// Sums over processes of which some are drawn, with a probability that grows with a weight u ≥ 0:
/// for each temperature Σ u/p, ΣW (all processes), Σ y/p, its normal part, and Σ (1−p)/p² of y², yu
/// and u² (drawn ones; W with its multiplicity m, y = W|V|²); then Σ m δ, 6 Σ m (all) and matrix
/// elements evaluated.
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

/// What one process adds at one temperature to a ThinnedLayout, drawn with probability p (0: not
/// drawn), through add(slot, value).
/// @param w             its W with multiplicity
/// @param u             the weight it is drawn by
/// @param squared       |V|² of a drawn one
/// @param weights_only  Σu over all processes instead of Σ u/p over the drawn
template <typename Add>
QUASI_HD inline void add_thinned_at(const ThinnedLayout& layout, int temperature, double p,
                                    double w, double u, double squared, bool normal,
                                    bool weights_only, const Add& add) {
  const double inverse = p > 0.0 ? 1.0 / p : 0.0;
  const double spread = (inverse - 1.0) * inverse;
  const double y = w * squared;
  add(layout.weight(temperature), weights_only ? u : u * inverse);
  add(layout.weighted_phase_space(temperature), w);
  add(layout.rate(temperature), y * inverse);
  add(layout.normal(temperature), normal ? y * inverse : 0.0);
  add(layout.spread_rate(temperature), p > 0.0 ? spread * y * y : 0.0);
  add(layout.spread_both(temperature), p > 0.0 ? spread * y * u : 0.0);
  add(layout.spread_weight(temperature), p > 0.0 ? spread * u * u : 0.0);
}

/// Adds the chunks [..][chunks][size] of each sum in order; index = its number.
struct AddChunks {
  const double* sums;
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
