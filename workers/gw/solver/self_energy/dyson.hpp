#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "workers/gw/solver/self_energy/graphical.hpp"
#include "workers/gw/solver/self_energy/sigma_matrix.hpp"

namespace quasi::gw {

/// One solution of the Dyson equation with the full matrix (docs/theory/gw.md 6.6, 7),
///
///   det[E − H(E)] = 0,   H(E) = E_mf δ − V_xc + X + ½ [Σ_c(E) + Σ_c(E)†]
///
/// on the branch of one band. A branch is the eigenvalue of constant rank.
struct DysonState {
  Vec3 k{};
  int k_index = 0, spin = 1, band = 1;  ///< counted from 1
  RootStatus status = RootStatus::kNone;
  std::optional<double> energy_ev;  ///< the root of largest Z on the branch
  double z = 1.0;                   ///< 1/(1 − c†(dΣ/dE)c)
  double own_weight = 1.0;          ///< |c|² of the mean-field states of the band's multiplet
};

/// Solves the Dyson equation for every outer state: all sign changes of λ_i(E) − E on the grid of
/// the matrices, each refined by bisection.
/// @param vxc_ev  V_xc between the outer states, [l][m], in the order of `matrices`
std::vector<DysonState> solve_dyson(const MeanField& field,
                                    const std::vector<SigmaMatrixAtK>& matrices,
                                    const std::vector<std::vector<Cplx>>& vxc_ev,
                                    const SigmaOptions& options);

/// Calculates the static matrix of quasiparticle self-consistency, X + ½ H[Σ_c(E_l) + Σ_c(E_m)]_lm
/// with H the Hermitian part [faleev2004]; Ry, [l][m].
/// @param outer_ry  E_l, within the matrix's energies
std::vector<Cplx> quasiparticle_potential(const SigmaMatrixAtK& matrix,
                                          const std::vector<double>& outer_ry);

/// Eigenvalues (ascending) and eigenvectors, row i the i-th, of a Hermitian matrix in row-major
/// order.
struct HermitianEigen {
  std::vector<double> values;
  std::vector<Cplx> vectors;
};
HermitianEigen hermitian_eigen(const std::vector<Cplx>& matrix, std::int64_t n);

}  // namespace quasi::gw
