#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "workers/thermal/kernels/four_phonon/tables_4ph.hpp"

/// Sums of the rows of λ'' and λ''', to which many blocks of a device add in any order
/// (docs/theory/thermal.md 11.5). They are integers, so that the order changes no bit.
namespace quasi::thermal {

/// Returns 2^exponent for an exponent of a normal number.
QUASI_HD inline double power_of_two(int exponent) {
  const std::int64_t bits = static_cast<std::int64_t>(1023 + exponent) << 52;
  double power;
  std::memcpy(&power, &bits, sizeof(power));
  return power;
}

/// A number of units as two integers, low + high·2^low_bits. Each term is rounded to a whole
/// number of units, and its `low` is at most 2^(low_bits − 1) in size.
struct SharedTerm4ph {
  std::int64_t low, high;

  QUASI_HD static SharedTerm4ph of(double units, int low_bits) {
    const double high = std::rint(units * power_of_two(-low_bits));
    return {static_cast<std::int64_t>(std::rint(units - high * power_of_two(low_bits))),
            static_cast<std::int64_t>(high)};
  }
  QUASI_HD double units(int low_bits) const {
    return static_cast<double>(low) + static_cast<double>(high) * power_of_two(low_bits);
  }
};

/// Sizes of the terms of the integer sums of one problem.
struct SharedUnits4ph {
  static constexpr int kMostLowBits = 50;  ///< a double holds all bits of `low`
  int low_bits = kMostLowBits;

  /// A typical term has this many bits, so that few terms need their `high`. The sum of N typical
  /// terms has a relative error of about 2^-typical_bits/√N.
  QUASI_HD int typical_bits() const { return low_bits - 4; }

  /// Chooses the most bits with which no sum of `low` overflows.
  /// @param terms  bound on the number of terms of one sum
  static SharedUnits4ph of(double terms) {
    return {std::clamp(62 - std::ilogb(std::max(terms, 1.0)), 20, kMostLowBits)};
  }
};

/// Units of the sums of a row and channel: a unit is 2^-exponent of the sum.
struct SharedScale4ph {
  std::int16_t rate = 0, weighted_phase_space = 0, phase_space = 0, none = 0;
};

/// Scales of all rows at all temperatures.
struct SharedScales4ph {
  std::vector<SharedScale4ph> scale;  ///< [n_rows][3 channels][n_temperatures]
  SharedUnits4ph units;
  double processes = 0.0;  ///< matrix elements of all rows at one total momentum, without exchange

  /// Finds scales from the sums over some total momenta. A row and channel without processes there
  /// gets the finest scale of the channel. The scale decides digits, not the sum.
  /// @param tables  on the host
  /// @param sums    [n_rows][3][SumLayout4ph] of the processes of each row, without exchange
  /// @param totals  number of total momenta of the sums
  static SharedScales4ph of(const Tables4ph& tables, const std::vector<double>& sums, int totals) {
    const SumLayout4ph layout{tables.n_temperatures};
    // A visit stands for at most one process for each operation, which no star exceeds by much.
    std::int32_t images = 1;
    for (std::int32_t i = 0; i < tables.n_points; ++i)
      images = std::max(images, tables.exchange->star_size[i]);
    SharedScales4ph scales;
    // A row gets a process from λ, s', a point of its own star as q'' or q''', and s'' or s'''.
    scales.units = SharedUnits4ph::of(2.0 * images * tables.n_points *
                                      std::pow(static_cast<double>(tables.n_branches), 3));
    const auto values = static_cast<std::size_t>(layout.size());
    const auto filled = [&](const auto& sum_of, std::int16_t SharedScale4ph::*to, int t) {
      constexpr int kNone = std::numeric_limits<std::int16_t>::min();
      std::vector<int> exponent(static_cast<std::size_t>(tables.n_rows() * kChannels4ph), kNone);
      int finest[kChannels4ph + 1] = {kNone, kNone, kNone, kNone};
      for (std::size_t i = 0; i < exponent.size(); ++i) {
        const double* of_row = &sums[i * values];
        const double mean = std::fabs(sum_of(of_row)) * 6.0 / of_row[layout.six_count()];
        if (!(mean > std::numeric_limits<double>::min()) || !std::isfinite(mean)) continue;
        exponent[i] =
            std::clamp(scales.units.typical_bits() - std::ilogb(mean * images), -1000, 1000);
        for (const std::size_t c : {i % kChannels4ph, std::size_t{kChannels4ph}})
          finest[c] = std::max(finest[c], exponent[i]);
      }
      for (std::size_t i = 0; i < exponent.size(); ++i) {
        int chosen = exponent[i];
        for (const std::size_t c : {i % kChannels4ph, std::size_t{kChannels4ph}})
          if (chosen == kNone) chosen = finest[c];
        scales.scale[i * static_cast<std::size_t>(tables.n_temperatures) +
                     static_cast<std::size_t>(t)].*
            to = static_cast<std::int16_t>(chosen == kNone ? 0 : chosen);
      }
    };
    scales.scale.resize(static_cast<std::size_t>(tables.n_rows() * kChannels4ph) *
                        static_cast<std::size_t>(tables.n_temperatures));
    for (int t = 0; t < tables.n_temperatures; ++t) {
      filled([&](const double* s) { return s[layout.normal(t)] + s[layout.umklapp(t)]; },
             &SharedScale4ph::rate, t);
      filled([&](const double* s) { return s[layout.weighted_phase_space(t)]; },
             &SharedScale4ph::weighted_phase_space, t);
      filled([&](const double* s) { return s[layout.phase_space()]; }, &SharedScale4ph::phase_space,
             t);
    }
    for (std::size_t i = 0; i < sums.size(); i += values)
      scales.processes += sums[i + static_cast<std::size_t>(layout.evaluations())];
    scales.processes /= totals;
    return scales;
  }
};

/// The integer sums on a device.
struct SharedSums4ph {
  unsigned long long* words = nullptr;    ///< [places][n_rows][3][SumLayout4ph][low, high]
  const SharedScale4ph* scale = nullptr;  ///< SharedScales4ph::scale
  SharedUnits4ph units;

  /// Counts are held in units of 1/24, as 24·|star| of the row.
  static constexpr int kCountUnits = 24;
};

/// Adds the integer sums to those of the blocks and clears them. The channel -- has no other sums.
/// index = ((place·n_rows + row)·3 + channel)·n_values + value
struct AddShared4ph {
  Tables4ph tables;
  SharedSums4ph shared;
  double* sum;  ///< [places][n_rows][3][SumLayout4ph]

  QUASI_HD void operator()(std::int64_t index) const {
    const Tables4ph& t = tables;
    const SumLayout4ph layout{t.n_temperatures};
    const auto value = static_cast<int>(index % layout.size());
    const std::int64_t row_channel = index / layout.size() % (t.n_rows() * kChannels4ph);
    unsigned long long* words = shared.words + 2 * index;
    const SharedTerm4ph term{static_cast<std::int64_t>(words[0]),
                             static_cast<std::int64_t>(words[1])};
    words[0] = words[1] = 0;
    double scale = SharedSums4ph::kCountUnits / 6.0;
    if (value <= layout.phase_space()) {
      const int temperature = value < layout.phase_space() ? value / 3 : 0;
      const SharedScale4ph of_row = shared.scale[row_channel * t.n_temperatures + temperature];
      scale = power_of_two(value == layout.phase_space() ? of_row.phase_space
                           : value % 3 == 2              ? of_row.weighted_phase_space
                                                         : of_row.rate);
    }
    const double star = t.exchange->star_size[row_channel / kChannels4ph / t.n_branches];
    const double own =
        row_channel % kChannels4ph == static_cast<int>(Channel4ph::kSplitting) ? 0.0 : sum[index];
    sum[index] = own + term.units(shared.units.low_bits) / (scale * star);
  }
};

}  // namespace quasi::thermal
