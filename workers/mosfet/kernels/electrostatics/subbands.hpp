#pragma once

#include <vector>

#include "workers/mosfet/model/structure.hpp"

namespace quasi::mosfet {

/// Begin here: levels and wave functions of every column, by family of valleys
/// (docs/theory/mosfet.md 9.4). The transported ones are the first `subbands`. ψ vanishes on the
/// two edge nodes, which are stored. iteration_cpu.hpp couples them with Poisson's equation
/// (poisson.hpp).
struct Subbands {
  std::vector<double> energy_ev;  ///< [n_families][subbands][nx]
  std::vector<double> psi;        ///< [n_families][subbands][nx][nz], nm^{-1/2}
};

/// Computes all eigenpairs of one column and family, by LAPACK (dstevd).
/// @param potential_v  V [nz] of the column
/// @param energy_ev    [n] out, ascending, n = nz − 2
/// @param vectors      [n][n] out: row p is ψ_p on the interior nodes, Δz Σψ² = 1
/// @throws NotConverged with the number of the column if LAPACK fails.
void all_states(const Structure& s, int family, const double* potential_v, double* energy_ev,
                double* vectors);

/// Computes the first `subbands` eigenpairs of every column into arrays of the shapes of Subbands.
/// A warm start uses the levels in these arrays. @return false if a level missed its certificate by
/// Sturm counts.
bool solve_levels(const Structure& s, const std::vector<double>& potential_v, bool warm,
                  std::vector<double>* energy_ev, std::vector<double>* psi);

/// Computes the first `subbands` eigenpairs of every column: twisted Rayleigh quotients, certified
/// by Sturm counts, from levels nearby or from bisection.
/// @param near  levels at a potential nearby; empty: none
Subbands solve_subbands(const Structure& s, const std::vector<double>& potential_v,
                        const Subbands& near = {});

/// All eigenpairs of one column, by family: [interior] energies and [interior][interior] vectors of
/// all_states().
struct ColumnStates {
  std::vector<const double*> energies, vectors;  ///< [n_families]
};

/// Computes the density response of one column at fixed sheet densities, from the complete set of
/// its states (docs/theory/mosfet.md 9.2):
///
///   A(j,k) = 2 Σ_ν Σ_{p ≤ N} Σ_{p' ≠ p} 2 c_{pp'} ψ_pψ_p'(j) ψ_pψ_p'(k).
///
/// Each pair is summed once, c = (ϱ_p − ϱ_p')/(ε_p' − ε_p) with ϱ = 0 beyond the transported
/// subbands; |c| ≤ max ϱ / 1 meV. δN_j = Σ_k A(j,k) Δz δV_k. A sum that is truncated to the
/// transported subbands works with six of them and makes Newton's iteration cycle with two.
///
/// @param sheet_nm2       ϱ [n_valleys][subbands] of the column, per valley
/// @param diagonal_nm2_ev −∂ϱ/∂ε [n_valleys][subbands], adds 2 Σ (−∂ϱ/∂ε) ψ²ψ²; may be null
/// @param clip            leave out pairs with c < 0, so that A is positive semidefinite
/// @param response        [nz][nz] out, symmetric; zero on the edge rows
void column_response(const Structure& s, const ColumnStates& states, const double* sheet_nm2,
                     const double* diagonal_nm2_ev, bool clip, double* response);

}  // namespace quasi::mosfet
