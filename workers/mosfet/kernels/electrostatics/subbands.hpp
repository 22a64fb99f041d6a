#pragma once

#include <vector>

#include "workers/mosfet/model/structure.hpp"

namespace quasi::mosfet {

/// Levels and wave functions of every column, by family of valleys. The transported ones are the
/// first `subbands`; ψ vanishes on the two edge nodes, which are stored.
struct Subbands {
  std::vector<double> energy_ev;  ///< [n_families][subbands][nx]
  std::vector<double> psi;        ///< [n_families][subbands][nx][nz], nm^{-1/2}
};

/// All eigenpairs of one column and family, by LAPACK (dstevd).
/// @param potential_v  V [nz] of the column
/// @param energy_ev    [n] out, ascending, n = nz − 2
/// @param vectors      [n][n] out: row p is ψ_p on the interior nodes, Δz Σψ² = 1
/// @throws NotConverged with the column's place if LAPACK fails.
void all_states(const Structure& s, int family, const double* potential_v, double* energy_ev,
                double* vectors);

/// The first `subbands` eigenpairs of every column, into arrays of the shapes of Subbands; warm:
/// from the levels that are there. @return false if a level missed its certificate by Sturm counts.
bool solve_levels(const Structure& s, const std::vector<double>& potential_v, bool warm,
                  std::vector<double>* energy_ev, std::vector<double>* psi);

/// The first `subbands` eigenpairs of every column by our own solver, cold (bisection, then twisted
/// Rayleigh quotients, certified by Sturm counts).
Subbands solve_subbands(const Structure& s, const std::vector<double>& potential_v);

/// All eigenpairs of one column, by family: [interior] energies and [interior][interior] vectors of
/// all_states().
struct ColumnStates {
  std::vector<const double*> energies, vectors;  ///< [n_families]
};

/// Density response of one column at fixed sheet densities, from the complete set of its states:
///
///   A(j,k) = 2 Σ_ν Σ_{p ≤ N} Σ_{p' ≠ p} 2 c_{pp'} ψ_pψ_p'(j) ψ_pψ_p'(k),
///
/// summed once over each pair, c = (ϱ_p − ϱ_p')/(ε_p' − ε_p) with ϱ = 0 beyond the transported
/// subbands; |c| ≤ max ϱ / 1 meV. δN_j = Σ_k A(j,k) Δz δV_k. A sum truncated to the transported
/// subbands looks right with six of them and makes Newton cycle with two.
///
/// @param sheet_nm2       ϱ [n_valleys][subbands] of the column, per valley
/// @param diagonal_nm2_ev −∂ϱ/∂ε [n_valleys][subbands], adds 2 Σ (−∂ϱ/∂ε) ψ²ψ²; may be null
/// @param clip            leave out pairs with c < 0, so that A is positive semidefinite
/// @param response        [nz][nz] out, symmetric; zero on the edge rows
void column_response(const Structure& s, const ColumnStates& states, const double* sheet_nm2,
                     const double* diagonal_nm2_ev, bool clip, double* response);

}  // namespace quasi::mosfet
