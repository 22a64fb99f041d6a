#pragma once

#include <cblas.h>
#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "workers/backend/error.hpp"
#include "workers/backend/view.hpp"

// Products, orthonormalisation and diagonalisation of blocks of states [n_states][n_pw] of real or
// complex numbers (docs/theory/gw.md 9.2). Every cut has a fixed size and BLAS runs on one thread
// inside it, so that bits do not depend on the number of threads.
namespace quasi::gw {

/// Lets BLAS use one thread while the object lives.
class SingleThreadedBlas {
 public:
  SingleThreadedBlas() : before_(openblas_get_num_threads()) { openblas_set_num_threads(1); }
  ~SingleThreadedBlas() { openblas_set_num_threads(before_); }
  SingleThreadedBlas(const SingleThreadedBlas&) = delete;
  SingleThreadedBlas& operator=(const SingleThreadedBlas&) = delete;

 private:
  int before_;
};

/// Sizes of C[m][n] = alpha A[m][k]·op(B) + beta C and the distances between rows.
struct BlockProduct {
  CBLAS_TRANSPOSE transpose_b;
  std::int64_t m, n, k;
  double alpha = 1.0, beta = 0.0;
  std::int64_t stride_a, stride_b, stride_c;
};

template <typename T>
void multiply_rows(const BlockProduct& p, const T* a, const T* b, T* c) {
  const auto m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
  const auto lda = static_cast<int>(p.stride_a), ldb = static_cast<int>(p.stride_b),
             ldc = static_cast<int>(p.stride_c);
  const T alpha = p.alpha, beta = p.beta;
  if constexpr (std::is_same_v<T, double>)
    cblas_dgemm(CblasRowMajor, CblasNoTrans, p.transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c,
                ldc);
  else
    cblas_zgemm(CblasRowMajor, CblasNoTrans, p.transpose_b, m, n, k, &alpha, a, lda, b, ldb, &beta,
                c, ldc);
}

/// Plane waves, or rows of a product, that one call of BLAS handles.
inline constexpr std::int64_t kPlaneWavePanel = 512, kRowPanel = 32;

/// Returns S[i][j] = Σ_G a_i(G) b*_j(G), row-major [n_a][n_b].
template <typename T>
std::vector<T> overlaps(View<const T, 2> a, View<const T, 2> b) {
  const std::int64_t n = a.extent[1], n_a = a.extent[0], n_b = b.extent[0];
  std::vector<T> s(static_cast<std::size_t>(n_a * n_b));
#pragma omp parallel for schedule(dynamic)
  for (std::int64_t i = 0; i < n_a; i += kRowPanel)
    multiply_rows<T>({.transpose_b = CblasConjTrans,
                      .m = std::min(kRowPanel, n_a - i),
                      .n = n_b,
                      .k = n,
                      .stride_a = n,
                      .stride_b = n,
                      .stride_c = n_b},
                     a.data + i * n, b.data, s.data() + i * n_b);
  return s;
}

/// Replaces x by C x with C [n_states][n_states].
template <typename T>
void rotate(const std::vector<T>& c, View<T, 2> x) {
  const std::int64_t m = x.extent[0], n = x.extent[1];
#pragma omp parallel
  {
    std::vector<T> panel(static_cast<std::size_t>(m * kPlaneWavePanel));
#pragma omp for schedule(dynamic)
    for (std::int64_t at = 0; at < n; at += kPlaneWavePanel) {
      const std::int64_t width = std::min(kPlaneWavePanel, n - at);
      multiply_rows<T>({.transpose_b = CblasNoTrans,
                        .m = m,
                        .n = width,
                        .k = m,
                        .stride_a = m,
                        .stride_b = n,
                        .stride_c = width},
                       c.data(), x.data + at, panel.data());
      for (std::int64_t i = 0; i < m; ++i)
        std::copy_n(panel.data() + i * width, width, x.data + i * n + at);
    }
  }
}

/// Computes x −= c·b with c [n_x][n_b], e.g. c = overlaps(x, b) to make x orthogonal to b.
template <typename T>
void subtract(const std::vector<T>& c, View<const T, 2> b, View<T, 2> x) {
  const std::int64_t n = x.extent[1];
#pragma omp parallel for schedule(dynamic)
  for (std::int64_t at = 0; at < n; at += kPlaneWavePanel)
    multiply_rows<T>({.transpose_b = CblasNoTrans,
                      .m = x.extent[0],
                      .n = std::min(kPlaneWavePanel, n - at),
                      .k = b.extent[0],
                      .alpha = -1.0,
                      .beta = 1.0,
                      .stride_a = b.extent[0],
                      .stride_b = n,
                      .stride_c = n},
                     c.data(), b.data + at, x.data + at);
}

/// Cholesky factor of a Hermitian matrix, column-major lower; false if it is not positive definite.
template <typename T>
bool factorise(std::vector<T>& a, std::int64_t edge) {
  const auto n = static_cast<lapack_int>(edge);
  if constexpr (std::is_same_v<T, double>)
    return LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'L', n, a.data(), n) == 0;
  else
    return LAPACKE_zpotrf(LAPACK_COL_MAJOR, 'L', n,
                          reinterpret_cast<lapack_complex_double*>(a.data()), n) == 0;
}

/// Replaces the states by x L^(−†), panel by panel, with the Cholesky factor L.
template <typename T>
void solve_factor(const std::vector<T>& factor, View<T, 2> x) {
  const std::int64_t n = x.extent[1];
  const auto m = static_cast<int>(x.extent[0]), stride = static_cast<int>(n);
  const T one = 1.0;
#pragma omp parallel for schedule(dynamic)
  for (std::int64_t at = 0; at < n; at += kPlaneWavePanel) {
    const auto width = static_cast<int>(std::min(kPlaneWavePanel, n - at));
    if constexpr (std::is_same_v<T, double>)
      cblas_dtrsm(CblasColMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, width, m, one,
                  factor.data(), m, x.data + at, stride);
    else
      cblas_ztrsm(CblasColMajor, CblasRight, CblasLower, CblasConjTrans, CblasNonUnit, width, m,
                  &one, factor.data(), m, x.data + at, stride);
  }
}

/// Most factorisations of orthonormalise().
inline constexpr int kOrthonormalPasses = 8;

/// Returns the largest error of an overlap of orthonormal states. Sums of n products round it.
inline double largest_overlap_error(std::int64_t n) {
  return std::max(1e-13, 4e-18 * static_cast<double>(n));
}

/// Returns the shift that makes overlaps of m states definite in spite of rounding [fukaya2020].
inline double overlap_shift(std::int64_t m, std::int64_t n) {
  return 11.0 * static_cast<double>(m * (n + m)) * 1.1e-16;
}

inline NotConverged dependent_states(std::int64_t count) {
  return NotConverged("the " + std::to_string(count) +
                      " states of the eigensolver became linearly dependent; set meanfield.solver "
                      "= \"dense\"");
}

/// Makes the states orthonormal and orthogonal to the orthonormal states `fixed`, by repeated
/// Cholesky factorisation of their overlaps. A shift is added to the diagonal where rounding makes
/// the overlaps indefinite. @throws NotConverged if the states stay linearly dependent
template <typename T>
void orthonormalise(View<const T, 2> fixed, View<T, 2> x) {
  const std::int64_t m = x.extent[0], n = x.extent[1];
  const View<const T, 2> states{x.data, {m, n}};
  for (int pass = 0; pass < kOrthonormalPasses; ++pass) {
    if (fixed.extent[0] > 0) subtract(overlaps(states, fixed), fixed, x);
    std::vector<T> s = overlaps(states, states);
    double deviation = 0.0;
    std::vector<double> scale(static_cast<std::size_t>(m));
    for (std::int64_t i = 0; i < m; ++i) {
      const double norm2 = std::real(s[static_cast<std::size_t>(i * m + i)]);
      scale[static_cast<std::size_t>(i)] = norm2 > 0.0 ? 1.0 / std::sqrt(norm2) : 1.0;
    }
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < m; ++j) {
        T& value = s[static_cast<std::size_t>(i * m + j)];
        deviation = std::max(deviation, std::abs(value - (i == j ? 1.0 : 0.0)));
        value *= scale[static_cast<std::size_t>(i)] * scale[static_cast<std::size_t>(j)];
      }
    if (pass > 0 && deviation < largest_overlap_error(n)) return;
    std::vector<T> factor = s;
    if (!factorise(factor, m)) {
      factor = s;
      const double shift = overlap_shift(m, n);
      for (std::int64_t i = 0; i < m; ++i) factor[static_cast<std::size_t>(i * m + i)] += shift;
      if (!factorise(factor, m)) break;
    }
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t g = 0; g < n; ++g) x(i, g) *= scale[static_cast<std::size_t>(i)];
    solve_factor(factor, x);
  }
  throw dependent_states(m);
}

/// Diagonalises a Hermitian matrix, column-major lower. Returns its eigenvalues, ascending, and
/// leaves eigenvector i in row i.
template <typename T>
std::vector<double> diagonalise(std::vector<T>& a, std::int64_t edge) {
  const auto n = static_cast<lapack_int>(edge);
  std::vector<double> values(static_cast<std::size_t>(edge));
  lapack_int info = 0;
  if constexpr (std::is_same_v<T, double>)
    info = LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'V', 'L', n, a.data(), n, values.data());
  else
    info = LAPACKE_zheevd(LAPACK_COL_MAJOR, 'V', 'L', n,
                          reinterpret_cast<lapack_complex_double*>(a.data()), n, values.data());
  if (info != 0)
    throw NotConverged("the projected Hamiltonian of order " + std::to_string(edge) +
                       " could not be diagonalised, LAPACK info " + std::to_string(info));
  return values;
}

}  // namespace quasi::gw
