#include "workers/gw/solver/mean_field/density.hpp"

#include <algorithm>

#include "workers/gw/model/memory_limits.hpp"
#include "workers/gw/physics/coulomb.hpp"
#include "workers/gw/physics/g_sphere.hpp"

namespace quasi::gw {

std::vector<std::vector<Cplx>> summed_density(const Wavefunctions& waves, const BrillouinZone& zone,
                                              const std::vector<int>& n_occupied,
                                              const std::vector<IVec3>& g, GwKernels& kernels) {
  const IVec3 extent = rotated_extent(waves, zone);
  const auto box = product_box(extent, extent, component_extent(g));
  std::vector<std::int32_t> index;
  for (const IVec3& v : g) index.push_back(box_position(v, box));
  PairProductKernels& pairs = kernels.pair_products();
  const auto sphere = pairs.load_sphere(box, view<const std::int32_t>(index, index.size()), {});
  // The box of both sides is large. Parts of the bands have a fixed number of them.
  const auto at_once = std::max<std::int64_t>(
      1,
      kDensityBands_bytes / (std::int64_t{32} * box[0] * box[1] * box[2] * waves.header.n_spinor));
  const std::size_t n_spins = n_occupied.size();
  const double weight = waves.header.electrons_per_band() / static_cast<double>(zone.size());
  std::vector<std::vector<Cplx>> density(n_spins, std::vector<Cplx>(g.size()));
  for (std::size_t spin = 0; spin < n_spins; ++spin)
    for (const ZonePoint& point : zone.points()) {
      const RotatedWaves rotated =
          rotated_waves(waves, zone.operations(), zone.rotation_to(point.k), static_cast<int>(spin),
                        0, n_occupied[spin]);
      std::vector<std::int32_t> at;
      for (const IVec3& v : rotated.g) at.push_back(box_position(v, box));
      const auto n_pw = static_cast<std::int64_t>(rotated.g.size()),
                 row = rotated.coefficients.extent[1];
      for (std::int64_t first = 0; first < n_occupied[spin]; first += at_once) {
        const std::int64_t count = std::min(at_once, n_occupied[spin] - first);
        const auto bands =
            pairs.load_bands(box, {rotated.coefficients.data + first * row, {count, row}},
                             view<const std::int32_t>(at, n_pw));
        pairs.add_density({*bands, {0, count}}, *sphere, weight,
                          view<Cplx>(density[spin], g.size()));
      }
    }
  return density;
}

PlaneWaveField hartree_potential(const MeanFieldHeader& header,
                                 const std::vector<std::vector<Cplx>>& change) {
  PlaneWaveField potential{.header = header, .values = {std::vector<Cplx>(header.g.size())}};
  for (std::size_t i = 0; i < header.g.size(); ++i) {
    const Vec3 g = to_real(header.g[i]);
    const double length2 = metric_dot(header.crystal.bdot, g, g);
    if (length2 == 0.0) continue;
    for (const auto& spin : change)
      potential.values[0][i] += coulomb_3d(length2) / header.crystal.volume_bohr3 * spin[i];
  }
  return potential;
}

}  // namespace quasi::gw
