#include "workers/gw/solver/screening/polarizability/symmetry_of_chi.hpp"

#include <cmath>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/gw/physics/crystal.hpp"

namespace quasi::gw {

void fill_lower_triangle(View<Cplx, 2> matrix) {
#pragma omp parallel for schedule(dynamic, 16)
  for (std::int64_t g = 0; g < matrix.extent[0]; ++g)
    for (std::int64_t h = 0; h < g; ++h) matrix(g, h) = std::conj(matrix(h, g));
}

bool is_identity_alone(const std::vector<SymmetryOperation>& operations,
                       const std::vector<int>& group) {
  return group.size() == 1 &&
         operations[static_cast<std::size_t>(group[0])].rotation ==
             IMat3{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}} &&
         operations[static_cast<std::size_t>(group[0])].translation == Vec3{};
}

UnsetVector<Cplx> summed_over_group(UnsetVector<Cplx> chi, const GSphere& sphere,
                                    const std::vector<SymmetryOperation>& operations,
                                    const std::vector<int>& group, bool at_gamma) {
  if (is_identity_alone(operations, group)) return chi;
  const auto n = static_cast<std::size_t>(sphere.size());
  const GIndex index(sphere.g);
  UnsetVector<Cplx> sum(n * n, Cplx{});
  std::vector<std::size_t> from(n);
  std::vector<Cplx> phase(n);
  for (const int s : group) {
    const SymmetryOperation& operation = operations[static_cast<std::size_t>(s)];
    const IMat3 back = inverse(operation.rotation);
    IVec3 g0{};
    if (!at_gamma)
      nearest_lattice_point(sphere.q - multiply(operation.rotation, sphere.q), &g0, 1e-4);
    for (std::size_t g = 0; g < n; ++g) {
      const IVec3 shifted = sphere.g[g] + g0;
      const std::int32_t found = index.find(multiply(back, shifted));
      if (found < 0)
        throw InvalidInput(
            "the ε sphere is not closed under the crystal's symmetry: a shell of plane waves lies "
            "on the cut-off; change epsilon.cutoff_ry a little");
      from[g] = static_cast<std::size_t>(found);
      phase[g] = std::polar(1.0, -dot(to_real(shifted), operation.translation));
    }
#pragma omp parallel for schedule(static)
    for (std::size_t g = 0; g < n; ++g)
      for (std::size_t h = 0; h < n; ++h)
        sum[g * n + h] += phase[g] * std::conj(phase[h]) * chi[from[g] * n + from[h]];
  }
  const double scale = 1.0 / static_cast<double>(group.size());
  for (Cplx& value : sum) value *= scale;
  return sum;
}

}  // namespace quasi::gw
