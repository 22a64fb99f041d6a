#pragma once

#include <cstddef>
#include <vector>

#include "workers/gw/solver/mean_field/dense_hamiltonian.hpp"

namespace quasi::gw {

/// A range of bands, and the side on which further bands of its kind lie.
struct BandGroup {
  std::size_t begin = 0, end = 0;
  bool upward = false;  ///< further bands lie above, as for empty bands
  std::size_t size() const { return end - begin; }
};

/// Eigenvalues and eigenvectors of a small Hermitian matrix.
struct Eigensystem {
  std::vector<double> value;  ///< [n], ascending
  std::vector<Cplx> column;   ///< [n][n]; column i is the eigenvector of value i
};
/// @throws NotConverged if LAPACK does not find them
Eigensystem eigensystem_of(std::vector<Cplx> matrix, std::size_t n);

/// a · b of square matrices, [n][n].
std::vector<Cplx> product(const std::vector<Cplx>& a, const std::vector<Cplx>& b, std::size_t n);

/// A^−½ of a positive definite matrix, [n][n].
std::vector<Cplx> inverse_root(const std::vector<Cplx>& a, std::size_t n);

/// Periodic parts of states on a list of plane waves.
struct PeriodicParts {
  const std::vector<IVec3>& g;
  const Cplx* coefficients;  ///< [n_bands][n_spinor][g]
  std::size_t n_bands = 0;
};
/// Calculates ⟨a_n|b_m⟩ of periodic parts, [n][m]. Both sides have plane waves of their own.
/// @param bands  of `a`
std::vector<Cplx> overlaps(const DenseStates& a, const BandGroup& bands, const PeriodicParts& b);

/// Assigns one column to each row so that pairs of the largest score come first; [n] columns.
/// @param score  [n][n]
std::vector<std::size_t> assigned_columns(const std::vector<double>& score, std::size_t n);

/// Adds to a group the bands that belong to its outermost multiplets.
BandGroup with_whole_multiplets(const DenseStates& states, BandGroup bands);

}  // namespace quasi::gw
