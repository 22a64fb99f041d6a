#include <cmath>

#include "workers/gw/kernels/pole_sums/first_order_kernels.hpp"
#include "workers/gw/physics/pole_difference.hpp"

namespace quasi::gw {
namespace {

/// Returns E_n − E_n'.
double difference_ry(const FirstOrderPairs& pairs, std::int64_t bra, std::int64_t ket) {
  return pairs.ket.energy_ry[static_cast<std::size_t>(ket)] -
         pairs.bra.energy_ry[static_cast<std::size_t>(bra)];
}

}  // namespace

PairKind pair_kind(const CoupledBands& bra, std::int64_t bra_index, const CoupledBands& ket,
                   std::int64_t ket_index) {
  const auto i = static_cast<std::size_t>(bra_index), j = static_cast<std::size_t>(ket_index);
  if (bra.occupation[i] != ket.occupation[j]) return PairKind::kQuotient;
  const double gap_ry = std::abs(bra.energy_ry[i] - ket.energy_ry[j]);
  if (gap_ry < kMultipletEnergies_ry) return PairKind::kMultiplet;
  return gap_ry < kCloseEnergies_ry ? PairKind::kClosed : PairKind::kQuotient;
}

FirstOrderPlan plan_first_order(const FirstOrderPairs& pairs, bool mirrored) {
  const std::int64_t n_bra = pairs.bra.size(), n_part = pairs.part.size();
  FirstOrderPlan plan;
  plan.factor.resize(static_cast<std::size_t>(n_bra * n_part));
  for (std::int64_t n = 0; n < n_part; ++n)
    for (std::int64_t bra = 0; bra < n_bra; ++bra) {
      const std::int64_t ket = pairs.part.begin + n;
      const PairKind kind = pair_kind(pairs.bra, bra, pairs.ket, ket);
      if (kind == PairKind::kQuotient)
        plan.factor[static_cast<std::size_t>(bra * n_part + n)] =
            pairs.weight / difference_ry(pairs, bra, ket);
      else if (!mirrored || bra <= ket)
        plan.close.push_back(
            {bra, n, kind, mirrored && bra == ket ? 0.5 * pairs.weight : pairs.weight});
    }
  return plan;
}

std::vector<double> exchange_factors(const FirstOrderPairs& pairs) {
  const std::int64_t n_bra = pairs.bra.size(), n_part = pairs.part.size();
  std::vector<double> factor(static_cast<std::size_t>(n_bra * n_part));
  for (std::int64_t bra = 0; bra < n_bra; ++bra)
    for (std::int64_t n = 0; n < n_part; ++n) {
      const std::int64_t ket = pairs.part.begin + n;
      const double occupations = pairs.ket.occupation[static_cast<std::size_t>(ket)] -
                                 pairs.bra.occupation[static_cast<std::size_t>(bra)];
      if (occupations != 0.0)
        factor[static_cast<std::size_t>(bra * n_part + n)] =
            -pairs.weight * occupations / difference_ry(pairs, bra, ket);
    }
  return factor;
}

}  // namespace quasi::gw
