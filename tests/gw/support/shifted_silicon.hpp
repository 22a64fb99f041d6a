#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "tests/gw/support/reference_files.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/solver/mean_field/dense_hamiltonian.hpp"
#include "workers/gw/solver/screening/epsilon.hpp"

namespace quasi::gw::test {

/// Silicon on the grid shifted by half a step along every axis, from VSC and VKB: the operations
/// that leave that grid, 12 of 48, and its irreducible points.
inline MeanField shifted_silicon(ReferenceCase& files, int n, GwKernels& kernels) {
  const Wavefunctions waves = read_wavefunctions(files.file("WFN"));
  const PlaneWaveField vsc = read_field(files.file("VSC"), "VSC");
  const auto nonlocal =
      std::make_shared<const RadialProjectors>(read_projectors(files.file("VKB")));
  Wavefunctions w;
  w.header = waves.header;
  w.wavefunction_cutoff_ry = waves.wavefunction_cutoff_ry;
  w.k_grid = {n, n, n};
  w.k_shift = {0.5, 0.5, 0.5};
  w.n_bands = 30;
  const Vec3 shift{0.5 / n, 0.5 / n, 0.5 / n};
  std::vector<SymmetryOperation> group;
  for (const SymmetryOperation& s : waves.header.crystal.symmetries) {
    IVec3 steps{};
    if (nearest_lattice_point(n * (multiply(s.rotation, shift) - shift), &steps))
      group.push_back(s);
  }
  EXPECT_EQ(group.size(), 12u);
  w.header.crystal.symmetries = group;
  irreducible_points(w.k_grid, shift, group, &w.k, &w.weight);
  for (const Vec3& k : w.k) {
    DenseStates states = dense_states_at(
        {w.header.crystal, w.wavefunction_cutoff_ry, vsc, *nonlocal}, k, 0, w.n_bands, kernels);
    w.waves.push_back({std::move(states.sphere.g), {std::move(states.coefficients)}});
    w.energy_ry.insert(w.energy_ry.end(), states.energy_ry.begin(), states.energy_ry.end());
    for (int b = 0; b < w.n_bands; ++b) w.occupation.push_back(b < 4 ? 1.0 : 0.0);
    w.first_occupied.push_back(1);
    w.last_occupied.push_back(4);
  }
  MeanField field{.waves = w,
                  .zone = BrillouinZone(w.k, group, n * n * n, "the shifted grid"),
                  .density = read_field(files.file("RHO"), "RHO")};
  field.q0 = {0.001, 0.0, 0.0};
  field.by_velocity = true;
  field.nonlocal = nonlocal;
  field.n_occupied = 4;
  field.n_occupied_of_spin = {4};
  return field;
}

/// Property 4 on shifted grids: 14.639 and, with local fields, 13.171 (4×4×4), 13.773 and 12.340
/// (6×6×6). The grid lies along one of the four ⟨111⟩ and has 12 of the 48 operations, so that its
/// own ε is uniaxial along it, by a quarter and more; the published numbers are the mean over the
/// four, which is the third of the trace. 0.7 %: for this crystal the sphere of plane waves that
/// jumps with q₀ moves finite q₀, with which they were made, by 0.6 % from k·p.
/// Found: 14.676, 13.105, 13.799, 12.354.
inline void expect_shifted_head(int n, double cutoff_ry, double expected) {
  ReferenceCase files("si2");
  const auto kernels = make_gw_kernels(find_device("cpu"));
  const MeanField field = shifted_silicon(files, n, *kernels);
  const CoulombInteraction coulomb(field.crystal(), field.waves.k_grid, {});
  SilentProgress silent;
  const auto m = dielectric_matrix(field, field.q0, {.epsilon_cutoff_ry = cutoff_ry, .bands = 30},
                                   coulomb, *kernels, silent);
  const auto& e = m.long_wave[0].epsilon;
  EXPECT_NEAR((e[0][0] + e[1][1] + e[2][2]).real() / 3.0, expected, 7e-3 * expected);
  // Uniaxial: equal diagonal, off-diagonals equal but for their signs.
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(e[i][i].real(), e[0][0].real(), 1e-8 * expected);
    EXPECT_NEAR(std::abs(e[i][(i + 1) % 3].real()), std::abs(e[0][1].real()), 1e-8 * expected);
  }
  EXPECT_GT(std::abs(e[0][1].real()), 0.05 * expected) << "an isotropic tensor would show nothing";
}

}  // namespace quasi::gw::test
