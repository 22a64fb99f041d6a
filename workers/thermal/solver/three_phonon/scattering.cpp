#include "workers/thermal/solver/three_phonon/scattering.hpp"

#include <cmath>

#include "workers/thermal/solver/harmonic/harmonic.hpp"
#include "workers/thermal/solver/harmonic/reduced_lattice.hpp"

namespace quasi::thermal {

std::vector<Index3> first_zone_points(const Crystal& crystal, const QMesh& mesh) {
  const Mat3 to_cartesian = transpose(crystal.reciprocal_per_nm());
  std::vector<Index3> points(static_cast<std::size_t>(mesh.size()));
  for (std::int64_t point = 0; point < mesh.size(); ++point) {
    int c[3];
    mesh.coordinates(point, c);
    double shortest = 1e300;
    for (int i = -2; i <= 2; ++i)
      for (int j = -2; j <= 2; ++j)
        for (int k = -2; k <= 2; ++k) {
          const Index3 image{c[0] + i * mesh.n[0], c[1] + j * mesh.n[1], c[2] + k * mesh.n[2]};
          const Vec3 q = to_cartesian * Vec3{static_cast<double>(image[0]) / mesh.n[0],
                                             static_cast<double>(image[1]) / mesh.n[1],
                                             static_cast<double>(image[2]) / mesh.n[2]};
          const double squared = dot(q, q);
          if (squared < shortest * (1.0 - 1e-9)) {
            shortest = squared;
            points[static_cast<std::size_t>(point)] = image;
          }
        }
  }
  return points;
}

ThreePhononProblem make_three_phonon_problem(const Crystal& crystal, SparseForceConstants fc3,
                                             const Symmetry& symmetry, const Modes& modes,
                                             const ThreePhononOptions& options) {
  const PhysicalConstants& constants = options.constants;
  return {.mesh = symmetry.mesh,
          .n_atoms = crystal.n_atoms(),
          .modes = &modes,
          .fc3 = std::move(fc3),
          .mass_amu = crystal.mass_amu,
          .rows = symmetry.irreducible,
          .first_zone = first_zone_points(crystal, symmetry.mesh),
          .broadening = options.broadening,
          .tetrahedra =
              options.broadening == Broadening::kTetrahedra
                  ? MeshTetrahedra(obtuse_superbases(mesh_steps_per_nm(crystal, symmetry.mesh)))
                  : MeshTetrahedra(),
          .scale_broad = options.scale_broad,
          .cut = options.cut,
          .delta_norm = options.window_norm ? 1.0 / std::erf(options.cut) : 1.0,
          .omega_max_rad_ps = options.omega_max_rad_ps,
          .rate_constant = constants.rate_3ph,
          .hbar_over_kb_k_ps = constants.hbar_over_kb_k_ps(),
          .precision = options.precision,
          .memory_budget_bytes = options.memory_budget_bytes};
}

void average_over_subspaces(const Modes& modes, const std::vector<std::int32_t>& points,
                            int components, double* values) {
  const int nb = modes.n_branches;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::int32_t* subspace = &modes.subspace[static_cast<std::size_t>(points[i]) * nb];
    double* rows = values + i * static_cast<std::size_t>(nb * components);
    for (int first = 0; first < nb;) {
      int last = first + 1;
      while (last < nb && subspace[last] == first) ++last;
      for (int c = 0; c < components && last - first > 1; ++c) {
        double sum = 0.0;
        for (int s = first; s < last; ++s) sum += rows[s * components + c];
        for (int s = first; s < last; ++s) rows[s * components + c] = sum / (last - first);
      }
      first = last;
    }
  }
}

}  // namespace quasi::thermal
