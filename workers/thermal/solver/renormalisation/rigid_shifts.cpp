#include "workers/thermal/solver/renormalisation/rigid_shifts.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace quasi::thermal {

std::array<int, 3> rigid_shifts(const Crystal& crystal, const std::complex<double>* vectors) {
  const int nb = crystal.n_branches();
  double total = 0.0;
  for (const double mass : crystal.mass_amu) total += mass;
  std::vector<std::pair<double, int>> overlap;
  for (int s = 0; s < nb; ++s) {
    double sum = 0.0;
    for (int a = 0; a < 3; ++a) {
      std::complex<double> shift = 0.0;
      for (int atom = 0; atom < crystal.n_atoms(); ++atom)
        shift += std::sqrt(crystal.mass_amu[atom] / total) * vectors[s * nb + 3 * atom + a];
      sum += std::norm(shift);
    }
    overlap.emplace_back(-sum, s);
  }
  std::sort(overlap.begin(), overlap.end());
  return {overlap[0].second, overlap[1].second, overlap[2].second};
}

}  // namespace quasi::thermal
