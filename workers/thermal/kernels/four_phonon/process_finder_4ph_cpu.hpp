#pragma once

#include <cstdint>
#include <vector>

#include "workers/thermal/kernels/four_phonon/exchange_4ph.hpp"
#include "workers/thermal/kernels/four_phonon/pair_key_4ph.hpp"

namespace quasi::thermal {

/// A (λ, λ') and a channel with processes.
struct ModePair4ph {
  Channel4ph channel;
  std::int32_t position;  ///< of Q in the order of total momenta
  std::int64_t row;
  std::int32_t mode0, mode1;
  bool both;  ///< Visit4ph::kBoth (exchange_4ph.hpp)
};

/// Finds the processes of a row from sorted tables of last pairs (docs/theory/thermal.md 11.3), on
/// the threads of the host.
class ProcessFinder4phCpu {
 public:
  ProcessFinder4phCpu() = default;
  explicit ProcessFinder4phCpu(const Tables4ph& tables)
      : tables_(tables), keys_(PairKeys4ph::of(tables)) {}

  /// Makes the tables of the stars of total momenta [first_total, first_total + n_totals).
  void prepare(std::int32_t first_total, std::int32_t n_totals);

  /// Finds the processes of one row with one prepared total momentum. Calls sink(pair) for every λ'
  /// and channel with processes, which are in `found`. @param t         the tables, with or without
  /// exchange @param position  of the total momentum in the order
  template <typename Sink>
  void for_each_pair(const Tables4ph& t, std::int32_t position, std::int64_t row,
                     std::vector<Found4ph>& found, const Sink& sink) const {
    const int nb = t.n_branches;
    const std::int32_t total = t.total_at(position);
    const auto point = static_cast<std::int32_t>(row / nb);
    const std::int32_t q0 = t.point[point];
    const std::int32_t mode0 = q0 * nb + static_cast<std::int32_t>(row % nb);
    if (!(t.omega[mode0] > 0.0)) return;
    for (const int sign1 : {1, -1}) {
      if (t.exchange && sign1 < 0) continue;  // ++ visits the splittings (quartet_share_4ph)
      // q' is Q − q for ++ and +-, and q − Q for --.
      const std::int32_t q1 = sign1 > 0 ? t.mesh.add(total, q0, -1) : t.mesh.add(q0, total, -1);
      const Visit4ph visit = visit_4ph(t, sign1, point, q1);
      if (visit == Visit4ph::kNone) continue;
      const int weight = t.partner_weight[static_cast<std::int64_t>(point) * t.mesh.size() + q1];
      for (std::int32_t mode1 = q1 * nb; mode1 < q1 * nb + nb; ++mode1) {
        if (!(t.omega[mode1] > 0.0)) continue;
        for (int c = 0; c < kChannels4ph; ++c) {
          const auto channel = static_cast<Channel4ph>(c);
          if (sign_second(channel) != sign1) continue;
          const ModePair4ph pair{channel, position, row, mode0, mode1, visit == Visit4ph::kBoth};
          find(t, pair, weight, found);
          if (!found.empty()) sink(pair);
        }
      }
    }
  }

 private:
  /// The sorted pairs of one total momentum and kind.
  struct PairTable {
    std::vector<std::uint32_t> key;
    std::vector<std::int32_t> index;
  };

  void fill(PairKind4ph kind, std::int32_t total, std::vector<std::uint64_t>& scratch,
            PairTable& table) const;
  /// Finds the processes of one (λ, λ') and channel, in the order of the star's table. @param
  /// weight  number of points for which q' counts
  void find(const Tables4ph& t, const ModePair4ph& pair, int weight,
            std::vector<Found4ph>& found) const;
  /// Adds the process with one last pair of the table if it passes the test.
  void test(const Tables4ph& t, const ModePair4ph& pair, int weight, std::int32_t pair_index,
            std::vector<Found4ph>& found) const;

  Tables4ph tables_{};
  PairKeys4ph keys_{};
  std::int32_t first_star_ = 0;
  std::vector<PairTable> difference_, sum_;  ///< of the prepared stars
};

}  // namespace quasi::thermal
