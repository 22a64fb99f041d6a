#include "workers/thermal/solver/four_phonon/total_order_4ph.hpp"

namespace quasi::thermal {

std::vector<std::int32_t> images_of_points(const Symmetry& symmetry) {
  const std::int64_t n = symmetry.mesh.size();
  const auto n_operations = static_cast<std::int64_t>(symmetry.operations.size());
  std::vector<std::int32_t> images(static_cast<std::size_t>(n_operations * n));
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < n_operations * n; ++i)
    images[static_cast<std::size_t>(i)] = symmetry.image(i % n, i / n);
  return images;
}

TotalOrder4ph order_totals_4ph(const Symmetry& symmetry, const std::vector<std::int32_t>& images) {
  TotalOrder4ph order;
  const auto n = static_cast<std::size_t>(symmetry.mesh.size());
  if (!symmetry.folded) return order;
  order.representative = symmetry.irreducible;
  std::vector<std::int32_t> position_of_star{0};
  for (const std::int32_t size : symmetry.multiplicity)
    position_of_star.push_back(position_of_star.back() + size);
  order.total.resize(n);
  order.star.resize(n);
  order.operation.resize(n);
  std::vector<std::int32_t> number_of(symmetry.operations.size(), -1);
  std::int32_t n_operations = 0;
  for (std::size_t q = 0; q < n; ++q) {
    const std::int32_t star = symmetry.star_of[q];
    const auto position =
        static_cast<std::size_t>(position_of_star[static_cast<std::size_t>(star)]++);
    std::int32_t& number = number_of[static_cast<std::size_t>(symmetry.operation_to[q])];
    if (number < 0) number = n_operations++;
    order.total[position] = static_cast<std::int32_t>(q);
    order.star[position] = star;
    order.operation[position] = number;
  }
  order.rotated.resize(static_cast<std::size_t>(n_operations) * n);
  order.rotated_back.resize(order.rotated.size());
#pragma omp parallel for schedule(dynamic, 1)
  for (std::size_t op = 0; op < number_of.size(); ++op) {
    if (number_of[op] < 0) continue;
    const auto row = static_cast<std::size_t>(number_of[op]) * n;
    for (std::size_t q = 0; q < n; ++q) {
      const std::int32_t image = images[op * n + q];
      order.rotated[row + q] = image;
      order.rotated_back[row + static_cast<std::size_t>(image)] = static_cast<std::int32_t>(q);
    }
  }
  return order;
}

}  // namespace quasi::thermal
