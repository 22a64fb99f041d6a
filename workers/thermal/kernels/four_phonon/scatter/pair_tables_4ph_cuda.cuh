#pragma once

#include <cstdint>

#include "workers/thermal/kernels/four_phonon/pair_key_4ph.hpp"

/// The sorted last pairs of the representatives of some stars of total momenta, as the device makes
/// and reads them. See docs/theory/thermal.md 11.3 for the equations.
namespace quasi::thermal::cuda4ph {

constexpr int kBins = 4096;  ///< energy bins of one class in the index of a sorted table
constexpr int kBinShift = PairKeys4ph::kEnergyBits - 12;
static_assert(1 << (PairKeys4ph::kEnergyBits - kBinShift) == kBins);

/// Keys of the representatives of a run of stars, one kind; index = place·n_pairs + pair.
struct MakeKeys {
  Tables4ph tables;
  PairKeys4ph keys;
  PairKind4ph kind;
  std::int32_t first_star;
  std::int64_t n_pairs;
  std::uint32_t* key;
  std::int32_t* value;

  QUASI_HD void operator()(std::int64_t index) const {
    const auto place = static_cast<int>(index / n_pairs);
    const std::int64_t pair = index % n_pairs;
    key[index] = keys.key(tables, kind, tables.representative_of(first_star + place), place, pair);
    value[index] = static_cast<std::int32_t>(pair);
  }
};

/// First entry of each (place, class, bin), counted from the place's own start.
struct IndexBins {
  const std::uint32_t* key;
  std::int64_t n_pairs;
  std::int32_t* bin_begin;  ///< [places][classes][kBins + 1]

  QUASI_HD void operator()(std::int64_t index) const {
    const auto bin = static_cast<std::uint32_t>(index % (kBins + 1));
    const auto pair_class = static_cast<std::uint32_t>(index / (kBins + 1) % PairKeys4ph::kClasses);
    const std::int64_t place = index / (kBins + 1) / PairKeys4ph::kClasses;
    const std::uint32_t base = static_cast<std::uint32_t>(place)
                               << (PairKeys4ph::kClassBits + PairKeys4ph::kEnergyBits);
    // Bin kBins of a class is where the next class begins.
    const std::uint32_t value =
        base + (pair_class << PairKeys4ph::kEnergyBits) + (bin << kBinShift);
    bin_begin[index] =
        static_cast<std::int32_t>(lower_bound_key(key + place * n_pairs, n_pairs, value));
  }
};

/// Data of a last pair for the test of a candidate and for the steps after it, in the order of the
/// sorted table. Neighbouring candidates are neighbours in memory, while their modes are scattered.
/// Each load reads 16 bytes.
struct alignas(16) PairEnergy {
  double energy;  ///< Ω = ω''' ∓ ω''
  double square;  ///< Σ|p|² of the pair, or its own (σ/sb)²
};
struct alignas(16) PairSpread {
  double x, y;  ///< Σp of the pair, two components
};
struct alignas(16) PairModes {
  double z;                   ///< the third component
  std::int32_t mode2, mode3;  ///< points in the frame of the star's representative
};
/// Precedence of λ'' and λ''' where phonons share visits (exchange_4ph.hpp).
struct alignas(8) PairPrecedence {
  std::int32_t second, third;
};
struct PairColumns {
  PairEnergy* energy;          ///< [places·n_pairs]
  PairSpread* spread;          ///< [places·n_pairs]; symmetric kind only
  PairModes* modes;            ///< [places·n_pairs]
  PairPrecedence* precedence;  ///< [places·n_pairs]; with exchange only
};

struct FillColumns {
  Tables4ph tables;
  PairKind4ph kind;
  std::int32_t first_star;
  const std::int32_t* pair;  ///< sorted
  std::int64_t n_pairs;
  PairColumns columns;

  QUASI_HD void operator()(std::int64_t index) const {
    const int nb = tables.n_branches;
    const std::int32_t representative =
        tables.representative_of(first_star + static_cast<std::int32_t>(index / n_pairs));
    const std::int32_t mode2 = pair[index] / nb;
    const std::int32_t mode3 =
        tables.mesh.add(representative, mode2 / nb, kind == PairKind4ph::kSum ? -1 : 1) * nb +
        pair[index] % nb;
    if (tables.exchange)
      columns.precedence[index] = {tables.exchange->precedence[mode2],
                                   tables.exchange->precedence[mode3]};
    const double energy = kind == PairKind4ph::kSum ? tables.omega[mode2] + tables.omega[mode3]
                                                    : tables.omega[mode3] - tables.omega[mode2];
    if (tables.rules.broadening != Broadening::kSymmetric) {
      columns.energy[index] = {
          energy, pair_width_squared(tables.rules.broadening, tables.p(mode2), tables.p(mode3))};
      columns.modes[index] = {0.0, mode2, mode3};
      return;
    }
    const SpreadSums sums = spread_sums(tables.p(mode2), tables.p(mode3));
    columns.energy[index] = {energy, sums.square};
    columns.spread[index] = {sums.sum.x, sums.sum.y};
    columns.modes[index] = {sums.sum.z, mode2, mode3};
  }
};

/// Sorted pairs of a batch, one kind.
struct PairTables {
  const std::int32_t* bin_begin;  ///< [places][classes][kBins + 1]
  PairColumns columns;
};

}  // namespace quasi::thermal::cuda4ph
