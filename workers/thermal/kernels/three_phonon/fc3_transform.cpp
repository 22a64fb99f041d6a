#include "workers/thermal/kernels/three_phonon/fc3_transform.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "workers/units/constants.hpp"

namespace quasi::thermal {

std::vector<std::complex<double>> unit_roots(int n) {
  std::vector<std::complex<double>> roots(static_cast<std::size_t>(n));
  for (int m = 0; m < n; ++m) {
    // Fold into the first octant, so that conjugate and quarter-turn roots agree to the last bit.
    const std::int64_t eighth = 8LL * m / n;
    const double quarter = 0.5 * units::kPi;
    const int turns = static_cast<int>((eighth + 1) / 2);
    const double rest =
        (static_cast<double>(4LL * m - static_cast<std::int64_t>(turns) * n) / n) * quarter;
    const double c = std::cos(rest);
    const double s = std::sin(rest);
    switch (turns % 4) {
      case 0:
        roots[m] = {c, s};
        break;
      case 1:
        roots[m] = {-s, c};
        break;
      case 2:
        roots[m] = {-c, -s};
        break;
      default:
        roots[m] = {s, -c};
        break;
    }
  }
  return roots;
}

std::vector<double> mass_scaled_tensors(const SparseForceConstants& constants,
                                        const std::vector<double>& mass_amu) {
  std::vector<double> scaled = constants.tensor;
  const int size = constants.tensor_size();
  for (std::int64_t block = 0; block < constants.n_blocks(); ++block) {
    double product = 1.0;
    for (int leg = 0; leg < constants.order; ++leg)
      product *= mass_amu[constants.atom[block * constants.order + leg]];
    const double factor = 1.0 / std::sqrt(product);
    for (int e = 0; e < size; ++e) scaled[block * size + e] *= factor;
  }
  return scaled;
}

Fc3Transform make_fc3_transform(const SparseForceConstants& fc3,
                                const std::vector<double>& mass_amu, const QMesh& mesh) {
  Fc3Transform t;
  t.nb = 3 * static_cast<int>(mass_amu.size());
  t.n_blocks = fc3.n_blocks();
  t.tensor = mass_scaled_tensors(fc3, mass_amu);
  Index3 high{0, 0, 0};
  const auto difference = [&](std::int64_t block, int d) {
    return fc3.cell[block * 6 + d] - fc3.cell[block * 6 + 3 + d];
  };
  for (std::int64_t block = 0; block < t.n_blocks; ++block)
    for (int d = 0; d < 3; ++d) {
      t.low[d] = std::min(t.low[d], difference(block, d));
      high[d] = std::max(high[d], difference(block, d));
    }
  for (int d = 0; d < 3; ++d) t.extent[d] = high[d] - t.low[d] + 1;
  std::map<Index3, int> cells;
  for (std::int64_t block = 0; block < t.n_blocks; ++block) {
    int box = 0;
    for (int d = 2; d >= 0; --d) box = box * t.extent[d] + difference(block, d) - t.low[d];
    const int* atom = &fc3.atom[block * 3];
    t.first_component.push_back(3 * atom[0]);
    t.target.push_back((box * t.nb + 3 * atom[1]) * t.nb + 3 * atom[2]);
    const Index3 third{fc3.cell[block * 6 + 3], fc3.cell[block * 6 + 4], fc3.cell[block * 6 + 5]};
    const auto [entry, fresh] = cells.try_emplace(third, static_cast<int>(t.third_cells.size()));
    if (fresh) t.third_cells.push_back(third);
    t.third_cell.push_back(entry->second);
  }
  for (int d = 0; d < 3; ++d) {
    const auto roots = unit_roots(mesh.n[d]);
    for (int m = 0; m < mesh.n[d]; ++m)
      for (int r = 0; r < t.extent[d]; ++r)
        t.phase[d].push_back(roots[static_cast<std::size_t>(
            QMesh::wrap(static_cast<int>(static_cast<std::int64_t>(m) * (t.low[d] + r) % mesh.n[d]),
                        mesh.n[d]))]);
  }
  return t;
}

BlockGroups group_by_target(const Fc3Transform& transform) {
  BlockGroups groups;
  groups.block.resize(static_cast<std::size_t>(transform.n_blocks));
  std::iota(groups.block.begin(), groups.block.end(), 0);
  std::stable_sort(groups.block.begin(), groups.block.end(),
                   [&](int a, int b) { return transform.target[a] < transform.target[b]; });
  for (std::size_t i = 0; i < groups.block.size(); ++i) {
    const int target = transform.target[groups.block[i]];
    if (i > 0 && target == groups.target.back()) continue;
    groups.first.push_back(static_cast<int>(i));
    groups.target.push_back(target);
  }
  groups.first.push_back(static_cast<int>(groups.block.size()));
  return groups;
}

}  // namespace quasi::thermal
