#include "workers/thermal/solver/four_phonon/total_order_4ph.hpp"

namespace quasi::thermal {

TotalOrder4ph order_totals_4ph(const Symmetry& symmetry) {
  TotalOrder4ph order;
  const auto n = static_cast<std::size_t>(symmetry.mesh.size());
  if (!symmetry.folded) return order;
  order.leader = symmetry.irreducible;
  std::vector<std::int32_t> place_of_star{0};
  for (const std::int32_t size : symmetry.multiplicity)
    place_of_star.push_back(place_of_star.back() + size);
  order.total.resize(n);
  order.star.resize(n);
  order.turn.resize(n);
  std::vector<std::int32_t> turn_of(symmetry.operations.size(), -1);
  std::int32_t n_turns = 0;
  for (std::size_t q = 0; q < n; ++q) {
    const std::int32_t star = symmetry.star_of[q];
    const auto place = static_cast<std::size_t>(place_of_star[static_cast<std::size_t>(star)]++);
    std::int32_t& turn = turn_of[static_cast<std::size_t>(symmetry.operation_to[q])];
    if (turn < 0) turn = n_turns++;
    order.total[place] = static_cast<std::int32_t>(q);
    order.star[place] = star;
    order.turn[place] = turn;
  }
  order.turned.resize(static_cast<std::size_t>(n_turns) * n);
  order.turned_back.resize(order.turned.size());
  for (std::size_t op = 0; op < turn_of.size(); ++op) {
    if (turn_of[op] < 0) continue;
    const auto row = static_cast<std::size_t>(turn_of[op]) * n;
#pragma omp parallel for schedule(static)
    for (std::size_t q = 0; q < n; ++q) {
      const std::int32_t image =
          symmetry.image(static_cast<std::int64_t>(q), static_cast<std::int64_t>(op));
      order.turned[row + q] = image;
      order.turned_back[row + static_cast<std::size_t>(image)] = static_cast<std::int32_t>(q);
    }
  }
  return order;
}

}  // namespace quasi::thermal
