#pragma once

#include <algorithm>
#include <cstdint>

#include "workers/thermal/kernels/four_phonon/exchange_4ph.hpp"
#include "workers/thermal/kernels/four_phonon/scatter/pair_table_store_4ph_cuda.cuh"
#include "workers/thermal/model/problem_4ph.hpp"

namespace quasi::thermal::cuda4ph {

/// Work of one launch: stars whose tables are made together, and total momenta that are summed
/// together.
struct Batch4ph {
  static constexpr std::int32_t kMostStars = 16;   ///< enough to fill the device
  static constexpr std::int32_t kMostTotals = 64;  ///< a whole star and more
  /// Number of total momenta for each star of a batch, if the memory is divided between both.
  static constexpr std::int32_t kTotalsOfStar = kMostTotals / kMostStars;
  static_assert(kMostStars <= PairKeys4ph::kBatch);

  std::int32_t stars = 1, totals = 1;

  /// Returns the best batch for a problem if memory allows it.
  static Batch4ph wanted(const Problem4ph& p) {
    const auto n = static_cast<std::int32_t>(p.mesh.size());
    if (p.totals.total.empty()) return {std::min(kMostStars, n), std::min(kMostStars, n)};
    const auto stars = static_cast<std::int32_t>(p.totals.representative.size());
    return {std::min({kMostStars, stars, 1 + kMostStars * stars / n}), std::min(kMostTotals, n)};
  }

  /// Returns the bytes of the batch on the device.
  std::int64_t bytes(const Problem4ph& p) const {
    return stars * PairTableStore::bytes(host_tables(p)) + totals * total_bytes(p);
  }
  /// Returns the bytes of the sums of one total momentum.
  static std::int64_t total_bytes(const Problem4ph& p) {
    const std::int64_t rows = static_cast<std::int64_t>(p.point.size()) * p.n_branches;
    return rows *
           (kChannels4ph + (p.star.empty() ? 0 : kExchanged * p.n_branches + 2 * kChannels4ph)) *
           SumLayout4ph{static_cast<int>(p.temperatures_k.size())}.size() * 8;
  }
  /// Returns the bytes of the smallest batch: one table and its sums.
  static std::int64_t least_bytes(const Problem4ph& p) {
    return PairTableStore::bytes(host_tables(p)) + kTotalsOfStar * total_bytes(p);
  }
};

/// Returns the bytes that a loaded problem keeps on the device in addition to its batches.
inline std::int64_t resident_bytes_4ph(const Problem4ph& p) {
  const std::int64_t rows = static_cast<std::int64_t>(p.point.size()) * p.n_branches;
  return rows * p.plan.n_triples * 27 * 16 + static_cast<std::int64_t>(p.phase.size()) * 8 +
         static_cast<std::int64_t>(p.eigenvector.size()) * 16 +
         static_cast<std::int64_t>(p.omega_rad_ps.size() * 4 + p.occupation.size()) * 8 +
         static_cast<std::int64_t>(p.partner_weight.size()) * 2 +
         static_cast<std::int64_t>(p.totals.rotated.size()) * 8 + (std::int64_t{64} << 20);
}

}  // namespace quasi::thermal::cuda4ph
