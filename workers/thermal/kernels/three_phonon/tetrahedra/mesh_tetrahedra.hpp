#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "workers/backend/host_device.hpp"
#include "workers/thermal/model/modes.hpp"
#include "workers/thermal/physics/matrix_element.hpp"
#include "workers/thermal/physics/q_mesh.hpp"
#include "workers/thermal/physics/tetrahedron.hpp"
#include "workers/thermal/physics/vectors.hpp"

namespace quasi::thermal {

// Begin here: energy conservation of three phonons by linear tetrahedra (docs/theory/thermal.md
// 4.1). MeshTetrahedra describes the tetrahedra around a mesh point. TetrahedraView3 holds the one
// formula of the weights, for kernels of the CPU and of CUDA.

/// A tetrahedron around a mesh point, which is its fourth corner.
struct TetrahedronCorners {
  std::uint8_t point[3];  ///< places in MeshTetrahedra::point
  std::uint8_t count;     ///< how many of the divisions of space have the tetrahedron
};

/// Views of the arrays from which the weight of a process follows, on the device of its kernels.
struct TetrahedraView3 {
  static constexpr int kMostPoints = 27;

  const double* omega_rad_ps = nullptr;     ///< [n_modes] of active and inactive modes
  const std::int32_t* neighbour = nullptr;  ///< [n_q][n_points], MeshTetrahedra::neighbours
  const std::int32_t* tied = nullptr;       ///< [n_modes] tied_branches
  const TetrahedronCorners* corners = nullptr;
  int n_corners = 0;
  int n_points = 0;
  int nb = 0;  ///< branches
  double share = 0.0;

  /// Returns the place of the opposite neighbour.
  QUASI_HD static int opposite(int i) { return i == 0 ? 0 : ((i - 1) ^ 1) + 1; }

  /// Returns the weight of a process, in ps, which takes the place of δ_σ(Δω): the mean of
  /// branch_delta_ps over branches tied to those of λ' and λ''. Σ |V|² over tied branches does
  /// not depend on the choice of their eigenvectors, and neither do rates.
  /// @param omega0_rad_ps  ω
  /// @param mode1, mode2   λ' at q' and λ'' at q ± q'
  QUASI_HD double delta_ps(Channel3 channel, double omega0_rad_ps, std::int64_t mode1,
                           std::int64_t mode2) const {
    const std::int64_t first1 = mode1 / nb * nb, first2 = mode2 / nb * nb;
    double sum = 0.0;
    int count = 0;
    for (std::int64_t m1 = first1 + tied[mode1]; m1 < first1 + nb && tied[m1] == tied[mode1]; ++m1)
      for (std::int64_t m2 = first2 + tied[mode2]; m2 < first2 + nb && tied[m2] == tied[mode2];
           ++m2) {
        sum += branch_delta_ps(channel, omega0_rad_ps, m1, m2);
        ++count;
      }
    return sum / count;
  }

  /// Returns the weight of q' in Σ_q' δ(ω ± ω'(q') − ω''(q ± q')) for one branch of each,
  /// in ps. Branches are joined by their order in ω.
  QUASI_HD double branch_delta_ps(Channel3 channel, double omega0_rad_ps, std::int64_t mode1,
                                  std::int64_t mode2) const {
    const bool absorption = channel == Channel3::kAbsorption;
    const std::int64_t q1 = mode1 / nb, q2 = mode2 / nb;
    const std::int64_t s1 = mode1 - q1 * nb, s2 = mode2 - q2 * nb;
    double f[kMostPoints];
    bool below = false, above = false;
    for (int i = 0; i < n_points; ++i) {
      const double first = omega_rad_ps[neighbour[q1 * n_points + i] * nb + s1];
      const double second =
          omega_rad_ps[neighbour[q2 * n_points + (absorption ? i : opposite(i))] * nb + s2];
      f[i] = absorption ? second - first : second + first;
      below = below || f[i] < omega0_rad_ps;
      above = above || f[i] > omega0_rad_ps;
    }
    return below && above ? sum_of_tetrahedra(omega0_rad_ps, f) : 0.0;
  }

  /// Returns the weight of q' in Σ_q' δ(ω − ω'(q')), in ps: the mean over branches tied to
  /// that of λ'.
  double density_ps(double omega_rad_ps_there, std::int64_t mode) const {
    const std::int64_t q = mode / nb;
    double sum = 0.0;
    int count = 0;
    for (std::int64_t m = q * nb + tied[mode]; m < (q + 1) * nb && tied[m] == tied[mode]; ++m) {
      double f[kMostPoints];
      for (int i = 0; i < n_points; ++i)
        f[i] = omega_rad_ps[neighbour[q * n_points + i] * nb + m % nb];
      sum += sum_of_tetrahedra(omega_rad_ps_there, f);
      ++count;
    }
    return sum / count;
  }

 private:
  /// @param f  [n_points] values at a mesh point and around it
  QUASI_HD double sum_of_tetrahedra(double energy, const double* f) const {
    double sum = 0.0;
    for (int t = 0; t < n_corners; ++t) {
      const TetrahedronCorners c = corners[t];
      sum +=
          c.count * tetrahedron_weight(energy, f[0], f[c.point[0]], f[c.point[1]], f[c.point[2]]);
    }
    return share * sum;
  }
};

/// The tetrahedra around each point of a mesh. A superbase, four steps of the mesh with the sum
/// zero, divides space: the 24 closed paths of its steps in all orders are the tetrahedra around a
/// point. Weights are means over the divisions of all superbases. All points have equal shapes.
struct MeshTetrahedra {
  MeshTetrahedra() = default;
  /// @param superbases  mesh coordinates of the steps, see obtuse_superbases
  explicit MeshTetrahedra(const std::vector<std::array<Index3, 4>>& superbases);

  /// Returns the numbers of the mesh points around each point, [mesh.size()][point.size()].
  std::vector<std::int32_t> neighbours(const QMesh& mesh) const;
  /// Returns views of arrays on one device. They must outlive the result.
  TetrahedraView3 view(const double* omega_rad_ps, const std::int32_t* neighbour,
                       const std::int32_t* tied, const TetrahedronCorners* corners_there,
                       int n_branches) const;

  std::vector<Index3> point;  ///< the point itself, then its neighbours as pairs of opposite ones
  std::vector<TetrahedronCorners> corners;
  double share = 0.0;  ///< volume of a tetrahedron over that of a mesh point, per division
};

/// Returns for every mode the lowest branch that counts as equal to it at this q-point.
/// Neighbouring branches count as equal within 1e-4 rad/ps or in one degenerate subspace. Branches
/// that cross are equal, too, because their order in frequency does not tell them apart.
std::vector<std::int32_t> tied_branches(const Modes& modes);

}  // namespace quasi::thermal
