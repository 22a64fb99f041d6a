#include "workers/thermal/solver/displacements/finite_differences.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace quasi::thermal {
namespace {

int power_of_three(int exponent) {
  int value = 1;
  for (int i = 0; i < exponent; ++i) value *= 3;
  return value;
}

/// Returns the tensor of a cluster from the tensor of its image:
/// Φ_{α₁…αₙ} = Σ_β Π_k R[β_k][α_slot(k)] Φ'_{β₁…βₙ}.
std::vector<double> pulled_back(const std::vector<double>& image, const Mat3& rotation,
                                const std::vector<int>& slot) {
  const int order = static_cast<int>(slot.size());
  std::vector<double> tensor = image;
  // Each pass rotates one index of the image, so that index k counts directions of slot[k].
  for (int k = 0; k < order; ++k) {
    const int stride = power_of_three(order - 1 - k);
    std::vector<double> rotated(tensor.size(), 0.0);
    for (std::size_t e = 0; e < tensor.size(); ++e) {
      const int beta = static_cast<int>(e) / stride % 3;
      const std::size_t base = e - static_cast<std::size_t>(beta) * stride;
      for (int alpha = 0; alpha < 3; ++alpha)
        rotated[base + static_cast<std::size_t>(alpha) * stride] +=
            rotation[beta][alpha] * tensor[e];
    }
    tensor = std::move(rotated);
  }
  std::vector<double> result(tensor.size());
  std::vector<int> index(slot.size(), 0);  // of the cluster
  std::size_t flat = 0;
  do {
    std::size_t from = 0;
    for (int k = 0; k < order; ++k) from = 3 * from + static_cast<std::size_t>(index[slot[k]]);
    result[flat++] = tensor[from];
  } while (advance_digits(index, 3));
  return result;
}

/// Returns the force on a site in a displaced cell, from the planned cell that is its image.
Vec3 force_on(const DisplacementPlan& plan, const PlanForces& forces, const DisplacedCell& cell,
              int site) {
  if (cell.moves.empty()) return forces[0][site];
  const SupercellGroup& group = plan.group();
  const DisplacementPlan::Image image = plan.find(cell);
  const int there = group.relative_to(group.image(image.operation, site), image.anchor);
  return transpose(group.rotation(image.operation)) * forces[image.cell][there];
}

std::vector<double> measured(const DisplacementPlan& plan, const PlanForces& forces,
                             const Cluster& cluster) {
  const int order = static_cast<int>(cluster.size());
  const double scale = -std::pow(2.0 * plan.options().distance_angstrom, 1 - order);
  std::vector<double> tensor;
  std::vector<int> axes(static_cast<std::size_t>(order - 1), 0);
  do {
    Vec3 sum{};
    plan.for_each_difference(cluster, axes, [&](const DisplacedCell& cell, double sign) {
      sum = sum + sign * force_on(plan, forces, cell, cluster.back());
    });
    for (const double x : sum) tensor.push_back(scale * x);
  } while (advance_digits(axes, 3));
  return tensor;
}

/// Returns the mean of a representative's tensor over the operations and exchanges that keep the
/// representative.
std::vector<double> averaged(const DisplacementPlan& plan, const Cluster& cluster,
                             const std::vector<double>& tensor) {
  const SupercellGroup& group = plan.group();
  std::vector<double> sum(tensor.size(), 0.0);
  int count = 0;
  std::vector<int> slot(cluster.size());
  for (int op = 0; op < group.n_operations(); ++op) {
    std::iota(slot.begin(), slot.end(), 0);
    do {
      const int anchor = group.image(op, cluster[slot[0]]);
      bool keeps = true;
      for (std::size_t k = 0; k < slot.size() && keeps; ++k)
        keeps = group.relative_to(group.image(op, cluster[slot[k]]), anchor) == cluster[k];
      if (!keeps) continue;
      ++count;
      const std::vector<double> image = pulled_back(tensor, group.rotation(op), slot);
      for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += image[e];
    } while (std::next_permutation(slot.begin(), slot.end()));
  }
  for (double& x : sum) x /= count;
  return sum;
}

}  // namespace

ClusterConstants finite_differences(const DisplacementPlan& plan, const PlanForces& forces,
                                    int order) {
  std::map<Cluster, std::vector<double>> representative;
  ClusterConstants constants;
  for (const Cluster& cluster : plan.clusters(order)) {
    const DisplacementPlan::Orbit orbit = plan.orbit_of(cluster);
    auto [entry, fresh] = representative.try_emplace(orbit.representative);
    if (fresh)
      entry->second =
          averaged(plan, orbit.representative, measured(plan, forces, orbit.representative));
    constants[cluster] =
        pulled_back(entry->second, plan.group().rotation(orbit.operation), orbit.slot);
  }
  return constants;
}

}  // namespace quasi::thermal
