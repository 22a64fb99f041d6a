// Interpolation of bands by star functions (band_interpolation.hpp). The truth are the energies at
// the points of the grid and, between them, the eigenvalues of the built-in crystal.

#include <gtest/gtest.h>

#include "tests/gw/support/small_silicon.hpp"
#include "workers/gw/solver/bands/band_interpolation.hpp"

namespace quasi::gw {
namespace {

using test::SmallSilicon;

// The interpolant passes through every point of the grid and through its symmetric copies. Rotated
// paths have equal energies.
TEST(BandPaths, PassThroughTheGridAndKeepItsSymmetry) {
  EmpiricalCrystal crystal = SmallSilicon::small_crystal();
  crystal.k_grid = {4, 4, 4};
  SmallSilicon s(crystal);
  const MeanField& f = s.field;
  std::vector<std::vector<double>> energy(6, std::vector<double>(f.waves.k.size()));
  for (int n = 0; n < 6; ++n)
    for (int ik = 0; ik < f.waves.n_k(); ++ik)
      energy[static_cast<std::size_t>(n)][static_cast<std::size_t>(ik)] = f.waves.energy(0, ik, n);
  for (const ZonePoint& point : f.zone.points()) {
    const PathBands path = interpolate_bands(
        f, energy, {.corners = {point.k, point.k + Vec3{0.1, 0.2, 0.3}}, .points_per_segment = 2});
    for (std::size_t n = 0; n < 6; ++n)
      EXPECT_NEAR(path.energy_ev[n][0], energy[n][static_cast<std::size_t>(point.irreducible)],
                  1e-9);
  }
  const PathBands a = interpolate_bands(
      f, energy, {.corners = {{0, 0, 0}, {0.11, 0.23, 0.37}}, .points_per_segment = 3});
  const SymmetryOperation& operation = f.zone.operations().back();
  const PathBands b = interpolate_bands(
      f, energy,
      {.corners = {{0, 0, 0}, multiply(operation.rotation, Vec3{0.11, 0.23, 0.37})},
       .points_per_segment = 3});
  for (std::size_t n = 0; n < 6; ++n)
    for (std::size_t i = 0; i < a.k.size(); ++i)
      EXPECT_NEAR(a.energy_ev[n][i], b.energy_ev[n][i], 1e-9);
  // Between the points of the 4×4×4 grid the lowest band, 8 eV wide, is compared with its H on an
  // 8×8×8 grid. It errs by 0.45 eV where bands cross and by 0.15 eV in the mean.
  EmpiricalCrystal dense = crystal;
  dense.k_grid = {8, 8, 8};
  dense.bands = 14;
  const MeanField exact = s.make(dense);
  double sum = 0.0;
  for (int ik = 0; ik < exact.waves.n_k(); ++ik) {
    const Vec3& k = exact.waves.k[static_cast<std::size_t>(ik)];
    const PathBands there =
        interpolate_bands(f, energy, {.corners = {k, k}, .points_per_segment = 2});
    const double error =
        std::abs(there.energy_ev[0][0] - exact.waves.energy(0, ik, 0)) * kRydberg_ev;
    EXPECT_LT(error, 0.5) << ik;
    sum += error;
  }
  EXPECT_LT(sum / exact.waves.n_k(), 0.15);
}

}  // namespace
}  // namespace quasi::gw
