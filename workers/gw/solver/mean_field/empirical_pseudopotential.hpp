#pragma once

#include <string>
#include <vector>

#include "workers/backend/progress.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"
#include "workers/gw/solver/mean_field/dense_hamiltonian.hpp"
#include "workers/gw/solver/mean_field/problem.hpp"
#include "workers/gw/solver/step_times.hpp"

namespace quasi::gw {

/// Diamond and zincblende crystals by the empirical pseudopotentials of Cohen and Bergstresser: a
/// mean field without files (spec 11). V_xc is undefined there, so only Σ has a meaning.
///
///   H_GG'(k) = |k+G|² δ + (1/N_at) Σ_a v_a(|G−G'|²) e^{−i(G−G')·τ_a}
struct EmpiricalCrystal {
  std::string name = "silicon";  ///< silicon, germanium or gaas
  double lattice_bohr = 0.0;     ///< 0: the crystal's own
  bool cubic_cell = false;       ///< 8 atoms instead of 2
  IVec3 repeats{1, 1, 1};        ///< supercell of that cell
  Mat3 deformation{
      {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};  ///< x → F x of the whole crystal; V(G) goes with its G
  Vec3 origin_shift{};  ///< moves all atoms, reduced; breaks inversion about the origin
  double cutoff_ry = 11.0;
  IVec3 k_grid{1, 1, 1};
  int bands = 20;
  Vec3 q0{0.001, 0.0, 0.0};  ///< reduced; shift of the second set, or direction and length of k·p
  bool by_velocity = false;  ///< q → 0 by k·p, exact since H is local; else by a second set
};

std::vector<std::string> empirical_crystal_names();

/// Diagonalises at the irreducible points of the grid, without `by_velocity` at those of the grid
/// shifted by q₀ too, and sums the density of the occupied bands.
MeanField empirical_mean_field(const EmpiricalCrystal& crystal, GwKernels& kernels,
                               Progress& progress, StepTimes* times = nullptr);

/// Its states between the points of the grid, by the same H. The kernels must outlive what is
/// returned.
/// @param crystal  of the mean field above
StatesAt empirical_states(const EmpiricalCrystal& wanted, const Crystal& crystal,
                          GwKernels& kernels);

}  // namespace quasi::gw
