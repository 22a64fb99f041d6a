#pragma once

#include <cstdint>

#include "workers/thermal/kernels/four_phonon/exchange_4ph.hpp"

namespace quasi::thermal::cuda4ph {

/// The q' of a point q for one total momentum. It is computed once for all blocks of the branches,
/// because mesh coordinates need divisions. See docs/theory/thermal.md 11.3 for the equations.
struct alignas(16) PartnerPoint4ph {
  std::int32_t q1;                 ///< q' = Q − q (++, +-) or q − Q (--)
  std::int32_t representative_q0;  ///< q and q' in the frame of the representative of Q's star
  std::int32_t representative_q1;
  std::int32_t
      weight;  ///< points that q' stands for, negative where Visit4ph::kBoth, 0 where kNone
};

/// Computes the partner points. index = (place·n_points + point)·2 + (0: ++ and +-, 1: --)
struct FindPartnerPoints4ph {
  Tables4ph tables;
  std::int32_t first_total;  ///< place in the order
  PartnerPoint4ph* partner_point;

  QUASI_HD void operator()(std::int64_t index) const {
    const Tables4ph& t = tables;
    const int sign = index % 2 == 0 ? 1 : -1;
    const auto point = static_cast<std::int32_t>(index / 2 % t.n_points);
    const auto place = first_total + static_cast<std::int32_t>(index / 2 / t.n_points);
    const std::int32_t total = t.total_at(place),
                       representative = t.representative_of(t.star_at(place)), q0 = t.point[point];
    const std::int32_t representative_q0 = t.rotate_back(place, q0);
    const std::int32_t q1 = sign > 0 ? t.mesh.add(total, q0, -1) : t.mesh.add(q0, total, -1);
    const std::int32_t representative_q1 = sign > 0
                                               ? t.mesh.add(representative, representative_q0, -1)
                                               : t.mesh.add(representative_q0, representative, -1);
    const Visit4ph visit = visit_4ph(t, sign, point, q1);
    const std::int32_t weight =
        t.partner_weight[static_cast<std::int64_t>(point) * t.mesh.size() + q1];
    partner_point[index] = {q1, representative_q0, representative_q1,
                            visit == Visit4ph::kNone   ? 0
                            : visit == Visit4ph::kBoth ? -weight
                                                       : weight};
  }
};

}  // namespace quasi::thermal::cuda4ph
