#pragma once

#include <functional>
#include <vector>

#include "workers/backend/progress.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"
#include "workers/gw/model/eigensolver_options.hpp"
#include "workers/gw/model/mean_field.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/screening/long_wave.hpp"

namespace quasi::gw {

/// Projectors on the plane waves of one k: V_nl = Σ_p β_p(k+G) right_p(k+G') with
/// right_p = Σ_q D_pq β*_q; both [n_projectors][n_pw].
struct ProjectorProducts {
  std::vector<Cplx> beta, right;
};
/// Takes the projectors of VKB at one k of WFN, looked up by G.
/// @throws InvalidInput if the file lacks the k-point or a plane wave of it
ProjectorProducts projectors_of_point(const Wavefunctions& waves, int k_index, int spin,
                                      const Projectors& projectors);
/// Evaluates fitted projectors on the plane waves `g` at any k.
ProjectorProducts projectors_at(const Crystal& crystal, const Vec3& k, const std::vector<IVec3>& g,
                                int spin, const RadialProjectors& projectors);

/// The mean-field Hamiltonian in plane waves at one k (docs/theory/gw.md 9), Ry, [n_pw][n_pw]:
///
///   H_GG' = |k+G|² δ + V_scf(G−G') + Σ_a Σ_pq β_ap(k+G) D^a_pq β*_aq(k+G')
///
/// with V_scf zero outside the density sphere. `g` may be in any order; projectors are looked up by
/// G.
/// @throws InvalidInput if the projector file lacks the k-point or a plane wave of it.
std::vector<Cplx> dense_hamiltonian(const Wavefunctions& waves, int k_index, int spin,
                                    const PlaneWaveField& potential, const Projectors& projectors);

/// H_GG' at any k on the plane waves `g`, with projectors fitted between the plane waves of VKB;
/// Ry, [n_pw][n_pw].
std::vector<Cplx> dense_hamiltonian_at(const Crystal& crystal, const Vec3& k,
                                       const std::vector<IVec3>& g, int spin,
                                       const PlaneWaveField& potential,
                                       const RadialProjectors& projectors);

/// Lowest eigenstates of H at one k on its own sphere |k+G|² < cut-off, in a gauge that depends on
/// H alone.
struct DenseStates {
  GSphere sphere;
  std::vector<double> energy_ry;     ///< [n_bands]
  std::vector<Cplx> coefficients;    ///< [n_bands][n_spinor][n_pw]
  double largest_residual_ry = 0.0;  ///< of the iterative eigensolver; 0 if H was diagonalised
  int n_spinor = 1;

  /// Returns the number of coefficients of one state.
  std::size_t row() const { return sphere.g.size() * static_cast<std::size_t>(n_spinor); }
};
/// The n_bands lowest states of a mean field at any k and spin.
using StatesAt = std::function<DenseStates(const Vec3& k, int spin, int n_bands)>;

/// The Hamiltonian of a mean field that is known at every k, on the spheres |k+G|² < cut-off.
/// It refers to its parts and does not own them.
struct ContinuousHamiltonian {
  const Crystal& crystal;
  double cutoff_ry = 0.0;
  const PlaneWaveField& potential;     ///< V_scf, the file VSC
  const RadialProjectors& projectors;  ///< fitted to the file VKB
  EigensolverOptions eigensolver{};
};
/// The Hamiltonian of a mean field that is known at the k-points of WFN. It refers to its parts and
/// does not own them.
struct FileHamiltonian {
  const PlaneWaveField& potential;  ///< V_scf, the file VSC
  const Projectors& projectors;     ///< the file VKB
  EigensolverOptions eigensolver{};
};
/// Finds the lowest eigenstates of H at one k of any grid. @throws InvalidInput if the sphere has
/// fewer plane waves than n_bands
DenseStates dense_states_at(const ContinuousHamiltonian& hamiltonian, const Vec3& k, int spin,
                            int n_bands, GwKernels& kernels);

/// Calculates the states that a file WFNq holds: the occupied bands and one more on the grid of
/// `waves` shifted by q₀, each on its own sphere |k+q₀+G|² < cut-off.
/// @param hamiltonian  of the crystal and the cut-off of `waves`
Wavefunctions shifted_dense_states(const Wavefunctions& waves, const Vec3& q0,
                                   const ContinuousHamiltonian& hamiltonian, GwKernels& kernels,
                                   Progress& progress);

/// Replaces all states by the n_bands lowest eigenstates of H, in a gauge that depends on H alone.
/// Occupations stay with the band numbers. Matrix elements of V_xc must be made anew from VXC.
/// @throws InvalidInput if a k-point has fewer plane waves, or if the eigenvalues differ from those
/// of
///         the file by more than 1e-4 Ry: the potential then belongs to another calculation.
void replace_by_dense_states(Wavefunctions& waves, int n_bands, const FileHamiltonian& hamiltonian,
                             GwKernels& kernels, Progress& progress);

}  // namespace quasi::gw
