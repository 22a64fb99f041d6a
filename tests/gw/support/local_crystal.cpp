#include "tests/gw/support/local_crystal.hpp"

#include <cmath>

#include "workers/backend/device/device.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/mean_field/density.hpp"
#include "workers/gw/solver/mean_field/gauge.hpp"

namespace quasi::gw::test {
namespace {

/// Appends the states of one k to a list of wavefunctions.
void add_states(const LocalCrystal& crystal, const Vec3& k, GwKernels& kernels, Wavefunctions& w) {
  const Mat3& bdot = crystal.cell.bdot;
  const GSphere sphere = make_g_sphere(bdot, k, crystal.cutoff_ry);
  const auto n = static_cast<std::size_t>(sphere.size());
  const double width2 = crystal.width_bohr * crystal.width_bohr;
  const double at_zero =
      -crystal.depth_ry * std::pow(2.0 * kPi * width2, 1.5) / crystal.cell.volume_bohr3;
  std::vector<Cplx> h(n * n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      const Vec3 g = to_real(sphere.g[i] - sphere.g[j]);
      h[i * n + j] = at_zero * std::exp(-0.5 * width2 * metric_dot(bdot, g, g)) +
                     (i == j ? sphere.kinetic_ry[i] : 0.0);
    }
  const auto bands = static_cast<std::size_t>(crystal.bands);
  std::vector<double> values(bands);
  std::vector<Cplx> vectors(bands * n);
  kernels.dense().eigen_hermitian(view<const Cplx>(h, n, n), view<double>(values, bands),
                                  view<Cplx>(vectors, bands, n));
  fix_gauge(sphere.g, values, 1e-8, vectors);
  w.energy_ry.insert(w.energy_ry.end(), values.begin(), values.end());
  for (std::size_t b = 0; b < bands; ++b) w.occupation.push_back(b == 0 ? 1.0 : 0.0);
  w.first_occupied.push_back(1);
  w.last_occupied.push_back(1);
  w.waves.push_back({sphere.g, {std::move(vectors)}});
}

/// The states at the irreducible points of the grid shifted by q.
Wavefunctions states_on_grid(const LocalCrystal& crystal, const Vec3& q, GwKernels& kernels) {
  Wavefunctions w;
  w.header.title = "WFN-Complex";
  w.header.crystal = crystal.cell;
  w.header.crystal.atoms.push_back({{0, 0, 0}, 2});
  w.header.density_cutoff_ry = 4.0 * crystal.cutoff_ry;
  w.header.g = make_g_sphere(crystal.cell.bdot, {}, w.header.density_cutoff_ry).g;
  const IVec3 extent = component_extent(w.header.g);
  for (int i = 0; i < 3; ++i) w.header.fft_grid[i] = good_fft_size(2 * extent[i] + 1);
  w.n_bands = crystal.bands;
  w.wavefunction_cutoff_ry = crystal.cutoff_ry;
  w.k_grid = crystal.k_grid;
  for (int i = 0; i < 3; ++i) w.k_shift[i] = q[i] * crystal.k_grid[i];
  std::vector<SymmetryOperation> group;
  for (const int s : little_group(crystal.cell.symmetries, q, true))
    group.push_back(crystal.cell.symmetries[static_cast<std::size_t>(s)]);
  irreducible_points(w.k_grid, q, group, &w.k, &w.weight);
  for (const Vec3& k : w.k) add_states(crystal, k, kernels, w);
  return w;
}

}  // namespace

Crystal cell(const Mat3& lattice) {
  Crystal c;
  c.alat_bohr = 1.0;
  c.blat_per_bohr = 2.0 * kPi;
  const double volume = dot(lattice[0], cross(lattice[1], lattice[2]));
  c.volume_bohr3 = std::abs(volume);
  c.recvol_per_bohr3 = std::pow(2.0 * kPi, 3) / c.volume_bohr3;
  for (int i = 0; i < 3; ++i) {
    c.avec[i] = lattice[i];
    c.bvec[i] = (1.0 / volume) * cross(lattice[(i + 1) % 3], lattice[(i + 2) % 3]);
  }
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      c.adot[i][j] = dot(lattice[i], lattice[j]);
      c.bdot[i][j] = 4.0 * kPi * kPi * dot(c.bvec[i], c.bvec[j]);
    }
  c.symmetries.push_back({{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}, {}});
  return c;
}

Crystal orthogonal_cell(double a, double b, double c) {
  return cell({{{a, 0, 0}, {0, b, 0}, {0, 0, c}}});
}

Crystal with_mirrors(Crystal crystal) {
  crystal.symmetries.clear();
  for (const int x : {1, -1})
    for (const int y : {1, -1})
      for (const int z : {1, -1})
        crystal.symmetries.push_back({{{{x, 0, 0}, {0, y, 0}, {0, 0, z}}}, {}});
  return crystal;
}

MeanField local_crystal(const LocalCrystal& crystal, const Vec3& q0) {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  Wavefunctions w = states_on_grid(crystal, {}, *kernels);
  const BrillouinZone zone(w.k, crystal.cell.symmetries, 0, "test");
  PlaneWaveField density{.header = w.header,
                         .values = summed_density(w, zone, {1}, w.header.g, *kernels)};
  density.header.title = "RHO-Complex";
  MeanField field = make_mean_field(std::move(w), {}, std::move(density));
  field.by_velocity = true;
  field.q0 = q0;
  field.shifted_states = [crystal](const Wavefunctions&, const Vec3& q, GwKernels& on, Progress&) {
    LocalCrystal occupied = crystal;
    occupied.bands = 2;
    return states_on_grid(occupied, q, on);
  };
  return field;
}

}  // namespace quasi::gw::test
