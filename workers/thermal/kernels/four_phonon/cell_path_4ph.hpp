#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "workers/thermal/model/contraction_plan_4ph.hpp"
#include "workers/thermal/physics/vectors.hpp"

namespace quasi::thermal::cuda4ph {

/// A path through the cells of the plan in steps of one lattice vector, always to the nearest
/// remaining cell. It begins at cell 0, where it stays for one step. Every further step moves.
/// See docs/theory/thermal.md 11.4 for the equations.
struct HostCellPath {
  std::vector<std::int32_t> step, first, atoms, order;
};

inline HostCellPath find_cell_path(const ContractionPlan4ph& plan) {
  struct Stop {
    Index3 cell;
    std::vector<std::int32_t> pairs;
  };
  std::vector<Stop> left;
  for (int pair = 0; pair < plan.n_pairs; ++pair) {
    const std::int32_t* c = &plan.cell[static_cast<std::size_t>(3 * plan.pair_cell[pair])];
    const Index3 cell{c[0], c[1], c[2]};
    auto stop =
        std::find_if(left.begin(), left.end(), [&](const Stop& s) { return s.cell == cell; });
    if (stop == left.end()) stop = left.insert(left.end(), {cell, {}});
    stop->pairs.push_back(pair);
  }
  HostCellPath path;
  Index3 here{0, 0, 0};
  const auto distance = [&](const Stop& s) {
    return std::abs(s.cell[0] - here[0]) + std::abs(s.cell[1] - here[1]) +
           std::abs(s.cell[2] - here[2]);
  };
  if (std::none_of(left.begin(), left.end(), [&](const Stop& s) { return s.cell == here; })) {
    path.step.push_back(0);
    path.first.push_back(0);
  }
  while (!left.empty()) {
    const auto next = std::min_element(left.begin(), left.end(), [&](const Stop& a, const Stop& b) {
      return distance(a) < distance(b) || (distance(a) == distance(b) && a.cell < b.cell);
    });
    do {  // at least one step, which may stay
      std::int32_t direction = 0;
      for (int i = 0; i < 3 && direction == 0; ++i)
        if (next->cell[i] != here[i]) {
          direction = next->cell[i] > here[i] ? i + 1 : -(i + 1);
          here[i] += direction > 0 ? 1 : -1;
        }
      path.step.push_back(direction);
      path.first.push_back(static_cast<std::int32_t>(path.order.size()));
    } while (distance(*next) > 0);
    std::sort(next->pairs.begin(), next->pairs.end(), [&](std::int32_t a, std::int32_t b) {
      return std::pair(plan.pair_third[a], plan.pair_fourth[a]) <
             std::pair(plan.pair_third[b], plan.pair_fourth[b]);
    });
    for (const std::int32_t pair : next->pairs) {
      path.atoms.push_back(plan.pair_third[pair] * 256 + plan.pair_fourth[pair]);
      path.order.push_back(pair);
    }
    left.erase(next);
  }
  path.first.push_back(static_cast<std::int32_t>(path.order.size()));
  return path;
}

}  // namespace quasi::thermal::cuda4ph
