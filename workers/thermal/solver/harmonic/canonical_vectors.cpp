#include "workers/thermal/solver/harmonic/canonical_vectors.hpp"

#include <lapacke.h>

#include <algorithm>
#include <cmath>

#include "workers/backend/error.hpp"
#include "workers/backend/philox.hpp"
#include "workers/units/constants.hpp"

namespace quasi::thermal {
namespace {

using Complex64 = std::complex<double>;

constexpr Vec3 kGenericDirection{0.5377, 0.6180, 0.5736};
/// Slopes that differ by less than this share of the largest element count as equal. Rounding
/// causes differences of at most 1e-10 between slopes that symmetry makes equal.
constexpr double kEqualSlopes = 1e-6;

/// Replaces vectors first ≤ s < last by the eigenvectors of `matrix` in their span.
/// @return the eigenvalues, ascending
std::vector<double> diagonalise_within(int n, int first, int last,
                                       const std::vector<Complex64>& matrix, Complex64* vectors) {
  const int size = last - first;
  std::vector<Complex64> block(static_cast<std::size_t>(size * size));
  for (int a = 0; a < size; ++a)
    for (int b = 0; b < size; ++b)
      block[a * size + b] =
          matrix_element(n, vectors + (first + a) * n, matrix, vectors + (first + b) * n);
  std::vector<double> values(static_cast<std::size_t>(size));
  std::vector<Complex64> mixing(block.size());
  diagonalise_hermitian(size, block, values.data(), mixing.data());
  std::vector<Complex64> rotated(static_cast<std::size_t>(size * n), 0.0);
  for (int a = 0; a < size; ++a)
    for (int b = 0; b < size; ++b)
      for (int i = 0; i < n; ++i)
        rotated[a * n + i] += mixing[a * size + b] * vectors[(first + b) * n + i];
  std::copy(rotated.begin(), rotated.end(), vectors + first * n);
  return values;
}

}  // namespace

void diagonalise_hermitian(int n, const std::vector<Complex64>& matrix, double* values,
                           Complex64* vectors) {
  // A row-major Hermitian matrix is the conjugate of the column-major one. Conjugation gives LAPACK
  // the matrix itself.
  for (std::size_t e = 0; e < matrix.size(); ++e) vectors[e] = std::conj(matrix[e]);
  const auto info = LAPACKE_zheev(LAPACK_COL_MAJOR, 'V', 'U', n,
                                  reinterpret_cast<lapack_complex_double*>(vectors), n, values);
  if (info != 0)
    throw NotConverged("diagonalising a dynamical matrix failed (LAPACK info " +
                       std::to_string(info) + ")");
}

Complex64 matrix_element(int n, const Complex64* a, const std::vector<Complex64>& matrix,
                         const Complex64* b) {
  Complex64 sum = 0.0;
  for (int i = 0; i < n; ++i) {
    Complex64 row = 0.0;
    for (int j = 0; j < n; ++j) row += matrix[i * n + j] * b[j];
    sum += std::conj(a[i]) * row;
  }
  return sum;
}

CanonicalVectors::CanonicalVectors(const Crystal& crystal, double tolerance_nm)
    : n_branches_(crystal.n_branches()), inversion_(find_inversion(crystal, tolerance_nm)) {
  const auto n = static_cast<std::uint32_t>(n_branches_);
  pattern_.resize(static_cast<std::size_t>(n) * n);
  for (std::uint32_t i = 0; i < n; ++i)
    for (std::uint32_t j = 0; j <= i; ++j)
      pattern_[i * n + j] = pattern_[j * n + i] = Philox::at(i, j, 0, 0, 0, 0).unit() - 0.5;
}

std::vector<Complex64> CanonicalVectors::symmetry_breaking_matrix(const Vec3& q) const {
  std::vector<Complex64> matrix(pattern_.begin(), pattern_.end());
  if (!inversion_) return matrix;
  // M → (M + ΘMΘ⁻¹)/2 with (ΘMΘ⁻¹)(κ̄, λ̄) = M(κ, λ)* e^{−iq·(L_κ − L_λ)}.
  const int n = n_branches_;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      const Index3& from = inversion_->shift[i / 3];
      const Index3& to = inversion_->shift[j / 3];
      double turns = 0.0;
      for (int x = 0; x < 3; ++x) turns += q[x] * (from[x] - to[x]);
      const int image_i = 3 * inversion_->partner[i / 3] + i % 3;
      const int image_j = 3 * inversion_->partner[j / 3] + j % 3;
      matrix[image_i * n + image_j] +=
          std::polar(pattern_[i * n + j], -2.0 * units::kPi * (turns - std::round(turns)));
    }
  for (Complex64& element : matrix) element *= 0.5;
  return matrix;
}

void CanonicalVectors::choose(const Vec3& q, const std::vector<Complex64> (&gradient)[3],
                              const std::int32_t* subspace, Complex64* vectors) const {
  const int n = n_branches_;
  const bool at_gamma = q == Vec3{0.0, 0.0, 0.0};
  std::vector<Complex64> slope, breaking;
  double largest = 0.0;
  for (int first = 0, last = 0; first < n; first = last) {
    for (last = first + 1; last < n && subspace[last] == first;) ++last;
    if (last - first == 1) continue;
    if (breaking.empty()) {
      breaking = symmetry_breaking_matrix(q);
      slope.resize(breaking.size());
      for (std::size_t e = 0; e < slope.size() && !at_gamma; ++e) {
        for (int g = 0; g < 3; ++g) slope[e] += kGenericDirection[g] * gradient[g][e];
        largest = std::max(largest, std::abs(slope[e]));
      }
    }
    std::vector<double> slopes(static_cast<std::size_t>(last - first), 0.0);
    if (!at_gamma) slopes = diagonalise_within(n, first, last, slope, vectors);
    for (int begin = first, end = first; begin < last; begin = end) {
      for (end = begin + 1;
           end < last && slopes[end - first] - slopes[end - 1 - first] <= kEqualSlopes * largest;)
        ++end;
      if (end - begin > 1) diagonalise_within(n, begin, end, breaking, vectors);
    }
  }
}

}  // namespace quasi::thermal
