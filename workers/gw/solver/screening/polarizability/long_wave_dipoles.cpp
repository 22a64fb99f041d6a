#include "workers/gw/solver/screening/polarizability/long_wave_dipoles.hpp"

#include <algorithm>
#include <cmath>

#include "workers/gw/solver/mean_field/spinors/spin_orbit.hpp"
#include "workers/gw/solver/screening/long_wave.hpp"
#include "workers/gw/solver/screening/long_wave_tensor.hpp"

namespace quasi::gw {

std::int64_t LongWaveDipoles::n_occupied(int spin) const {
  return field_.n_occupied_of_spin[static_cast<std::size_t>(spin)];
}

std::int64_t LongWaveDipoles::n_blocks(int spin) const {
  // Every block transfers the occupied states again.
  constexpr std::int64_t kFewestBands = 512, kMostBlocks = 4;
  return std::clamp<std::int64_t>(n_empty(spin) / kFewestBands, 1, kMostBlocks);
}

void LongWaveDipoles::add_spin_orbit(const BandPairs& pairs, const std::vector<Vec3>& directions,
                                     std::vector<Cplx>& matrices) const {
  const auto ik = static_cast<std::size_t>(pairs.k_index);
  const KPointWaves& at = field_.waves.waves[ik];
  const StateCoefficients& c = at.coefficients[static_cast<std::size_t>(pairs.spin)];
  const auto row = static_cast<std::int64_t>(at.g.size()) * field_.n_spinor();
  const auto states = [&](const BandRange& bands) {
    return View<const Cplx, 2>{c.part(static_cast<std::size_t>(bands.begin * row),
                                      static_cast<std::size_t>(bands.size() * row)),
                               {bands.size(), row}};
  };
  for (std::size_t d = 0; d < directions.size(); ++d)
    field_.spin_orbit->add_slope(
        {field_.waves.k[ik], at.g, states(pairs.left), states(pairs.right)}, directions[d],
        matrices.data() + static_cast<std::int64_t>(d) * pairs.left.size() * pairs.right.size());
}

void LongWaveDipoles::add_block(const Orbit& orbit, int spin, std::int64_t block,
                                GwKernels& kernels, std::vector<Cplx>& to) const {
  const std::int64_t n_v = n_occupied(spin), n_c = n_empty(spin);
  const std::int64_t first = block * n_c / n_blocks(spin),
                     count = (block + 1) * n_c / n_blocks(spin) - first,
                     first_band = first_empty(spin) + first;
  // At S k_r the direction is S⁻¹ q.
  const Rotation rotation = field_.zone.rotation_to(
      field_.zone.points()[static_cast<std::size_t>(orbit.representative)].k);
  const SymmetryOperation& s =
      field_.zone.operations()[static_cast<std::size_t>(rotation.operation)];
  const auto axes = along_cartesian_axes(field_.crystal(),
                                         std::sqrt(metric_dot(field_.crystal().bdot, q0_, q0_)));
  const BandPairs pairs{rotation.irreducible, spin, {0, n_v}, {first_band, first_band + count}};
  std::vector<Vec3> directions;
  for (const Vec3& axis : axes) directions.push_back(multiply(inverse(s.rotation), axis));
  std::vector<Cplx> matrices =
      velocity_matrices(field_.waves, pairs, directions, field_.nonlocal.get(), kernels);
  if (field_.spin_orbit != nullptr) add_spin_orbit(pairs, directions, matrices);
  for (std::int64_t axis = 0; axis < 3; ++axis) {
#pragma omp parallel for schedule(static)
    for (std::int64_t v = 0; v < n_v; ++v)
      for (std::int64_t c = 0; c < count; ++c)
        to[static_cast<std::size_t>((axis * n_v + v) * n_c + first + c)] =
            matrices[static_cast<std::size_t>((axis * n_v + v) * count + c)] /
            (field_.dipole_energy(spin, rotation.irreducible, static_cast<int>(v)) -
             field_.dipole_energy(spin, rotation.irreducible, static_cast<int>(first_band + c)));
  }
}

std::vector<Cplx> LongWaveDipoles::calculate(const Orbit& orbit, int spin,
                                             GwKernels& kernels) const {
  const std::int64_t n_v = n_occupied(spin), n_c = n_empty(spin);
  std::vector<Cplx> all(static_cast<std::size_t>(3 * n_v * n_c));
  for (std::int64_t block = 0; block < n_blocks(spin); ++block)
    add_block(orbit, spin, block, kernels, all);
  return all;
}

void LongWaveDipoles::share(const std::vector<Orbit>& orbits, DeviceTeam& team) {
  struct Block {
    std::size_t orbit;
    int spin;
    std::int64_t block;
  };
  std::vector<Block> blocks;
  for (std::size_t orbit = 0; orbit < orbits.size(); ++orbit)
    for (int spin = 0; spin < field_.n_spins(); ++spin) {
      const std::int64_t n_v = n_occupied(spin);
      if (n_v == 0) continue;
      shared_[{orbit, spin}].resize(static_cast<std::size_t>(3 * n_v * n_empty(spin)));
      for (std::int64_t block = 0; block < n_blocks(spin); ++block)
        blocks.push_back({orbit, spin, block});
    }
  team.run_here(
      static_cast<std::int64_t>(blocks.size()), [&](std::int64_t task, GwKernels& kernels) {
        const Block& of = blocks[static_cast<std::size_t>(task)];
        add_block(orbits[of.orbit], of.spin, of.block, kernels, shared_.at({of.orbit, of.spin}));
      });
}

const std::vector<Cplx>* LongWaveDipoles::shared(std::size_t orbit, int spin) const {
  const auto found = shared_.find({orbit, spin});
  return found == shared_.end() ? nullptr : &found->second;
}

}  // namespace quasi::gw
