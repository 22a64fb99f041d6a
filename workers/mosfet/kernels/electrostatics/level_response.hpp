#pragma once

#include <vector>

#include "workers/mosfet/kernels/electrostatics/subbands.hpp"

namespace quasi::mosfet {

/// The transported states of one column, by family: [subbands] energies, and a ψ on the interior
/// nodes for every level.
struct ColumnLevels {
  std::vector<std::vector<double>> energies;    ///< eV [n_families][subbands]
  std::vector<std::vector<const double*>> psi;  ///< nm^{-1/2} [n_families][subbands][interior]
};

/// Computes the response of column_response() without `clip` from the transported states alone
/// (docs/theory/mosfet.md 9.2).
///
/// The sum over the other states is a Green's function of the tridiagonal matrix T of the column,
///
///   Σ_{p' ≠ p} ψ_p'(j) ψ_p'(k)/(ε_p' − ε_p) = (1 − ψ_pψ_pᵀ) (T − ε_p)⁻¹ (1 − ψ_pψ_pᵀ),
///
/// where T lacks the row and column of the largest ψ_p. Its n columns take O(n²) operations. All
/// eigenvectors take O(n³).
/// @param potential_v  V [nz] of the column
/// @param response     [nz][nz] out, symmetric; zero on the edge rows
/// @return false, without a response, if levels are so close that the limit of column_response() on
/// their quotient or rounding matters
bool level_response(const Structure& s, const double* potential_v, const ColumnLevels& levels,
                    const double* sheet_nm2, const double* diagonal_nm2_ev, double* response);

}  // namespace quasi::mosfet
