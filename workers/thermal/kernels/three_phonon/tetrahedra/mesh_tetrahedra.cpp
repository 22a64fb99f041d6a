#include "workers/thermal/kernels/three_phonon/tetrahedra/mesh_tetrahedra.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

namespace quasi::thermal {
namespace {

Index3 sum(const Index3& a, const Index3& b) { return {a[0] + b[0], a[1] + b[1], a[2] + b[2]}; }
Index3 minus(const Index3& a) { return {-a[0], -a[1], -a[2]}; }

}  // namespace

MeshTetrahedra::MeshTetrahedra(const std::vector<std::array<Index3, 4>>& superbases) {
  // Counts how often each tetrahedron occurs. The key is its three corners besides the origin, in
  // rising order.
  std::map<std::array<Index3, 3>, int> found;
  for (const std::array<Index3, 4>& steps : superbases) {
    std::array<std::size_t, 4> order{0, 1, 2, 3};
    do {
      const Index3 first = steps[order[0]];
      const Index3 second = sum(first, steps[order[1]]);
      std::array<Index3, 3> corner{first, second, sum(second, steps[order[2]])};
      std::sort(corner.begin(), corner.end());
      ++found[corner];
    } while (std::next_permutation(order.begin(), order.end()));
  }
  point.push_back({0, 0, 0});
  const auto place_of = [this](const Index3& p) {
    const auto at = std::find(point.begin(), point.end(), p);
    if (at != point.end()) return static_cast<std::uint8_t>(at - point.begin());
    point.push_back(p);
    point.push_back(minus(p));
    return static_cast<std::uint8_t>(point.size() - 2);
  };
  for (const auto& [corner, count] : found)
    corners.push_back({{place_of(corner[0]), place_of(corner[1]), place_of(corner[2])},
                       static_cast<std::uint8_t>(count)});
  if (static_cast<int>(point.size()) > TetrahedraView3::kMostPoints)
    throw std::logic_error("the superbases of a mesh are not obtuse");
  // Six tetrahedra fill the volume of a mesh point.
  share = 1.0 / (6.0 * static_cast<double>(superbases.size()));
}

std::vector<std::int32_t> MeshTetrahedra::neighbours(const QMesh& mesh) const {
  std::vector<std::int32_t> result;
  result.reserve(static_cast<std::size_t>(mesh.size()) * point.size());
  for (std::int64_t q = 0; q < mesh.size(); ++q) {
    int c[3];
    mesh.coordinates(q, c);
    for (const Index3& p : point)
      result.push_back(mesh.index(c[0] + p[0], c[1] + p[1], c[2] + p[2]));
  }
  return result;
}

TetrahedraView3 MeshTetrahedra::view(const double* omega_rad_ps, const std::int32_t* neighbour,
                                     const std::int32_t* tied,
                                     const TetrahedronCorners* corners_there,
                                     int n_branches) const {
  return {.omega_rad_ps = omega_rad_ps,
          .neighbour = neighbour,
          .tied = tied,
          .corners = corners_there,
          .n_corners = static_cast<int>(corners.size()),
          .n_points = static_cast<int>(point.size()),
          .nb = n_branches,
          .share = share};
}

std::vector<std::int32_t> tied_branches(const Modes& modes) {
  constexpr double kTied_rad_ps = 1e-4;
  const int nb = modes.n_branches;
  std::vector<std::int32_t> first(static_cast<std::size_t>(modes.n_modes()));
  for (std::int64_t mode = 0; mode < modes.n_modes(); ++mode) {
    const bool same_point = mode % nb > 0;
    const bool tied =
        same_point &&
        (modes.omega_rad_ps[mode] - modes.omega_rad_ps[mode - 1] < kTied_rad_ps ||
         (!modes.subspace.empty() && modes.subspace[mode] == modes.subspace[mode - 1]));
    first[mode] = tied ? first[mode - 1] : static_cast<std::int32_t>(mode % nb);
  }
  return first;
}

}  // namespace quasi::thermal
