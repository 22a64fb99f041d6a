#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <vector>

#include "workers/thermal/model/inversion.hpp"
#include "workers/thermal/physics/vectors.hpp"

namespace quasi::thermal {

/// Chooses the eigenvectors inside degenerate sets, so that no result depends on which of them the
/// eigensolver returns (docs/theory/thermal.md 3.2). Each set is split in two steps:
///
/// 1. by the velocity Σ_γ n_γ ∂D/∂q_γ along a fixed generic direction n. Branches that pass through
///    each other get the eigenvectors that belong to their slopes. Γ has no slopes: there, this
///    step is left out.
/// 2. vectors of equal velocity, by a fixed matrix M. M is real and symmetric with elements of no
///    pattern, made invariant under Θ where the crystal has a centre of inversion. The eigenvectors
///    then satisfy Θe = e up to a phase.
///
/// Eigenvectors are unique up to their phases. They are as accurate as eigenvalues of M within a
/// set are apart, 1e-13 typically. The order of the vectors within a set is ascending in velocity,
/// then in M.
class CanonicalVectors {
 public:
  /// @param tolerance_nm  how far an atom may be from the inverse of another
  CanonicalVectors(const Crystal& crystal, double tolerance_nm);

  /// @param q         fractional
  /// @param gradient  [3][nb][nb] ∂D/∂q, row-major
  /// @param subspace  [nb] first branch of the degenerate set of each branch
  /// @param vectors   [nb][nb: 3κ+α] eigenvectors, replaced by the canonical ones
  /// @throws NotConverged if LAPACK fails
  void choose(const Vec3& q, const std::vector<std::complex<double>> (&gradient)[3],
              const std::int32_t* subspace, std::complex<double>* vectors) const;

 private:
  /// M at q, [nb][nb].
  std::vector<std::complex<double>> symmetry_breaking_matrix(const Vec3& q) const;

  int n_branches_;
  std::vector<double> pattern_;  ///< [nb][nb] M without the inversion
  std::optional<Inversion> inversion_;
};

/// Diagonalises a Hermitian row-major matrix [n][n]; eigenvalues ascend,
/// vectors[branch][component].
/// @throws NotConverged if LAPACK fails
void diagonalise_hermitian(int n, const std::vector<std::complex<double>>& matrix, double* values,
                           std::complex<double>* vectors);

/// a† M b of a row-major matrix [n][n].
std::complex<double> matrix_element(int n, const std::complex<double>* a,
                                    const std::vector<std::complex<double>>& matrix,
                                    const std::complex<double>* b);

}  // namespace quasi::thermal
