#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

/// Least squares by Householder reflections, in the precision of T.
namespace quasi::gw::fit {

/// Fits of exponential sums are ill-conditioned: normal equations lose 8 to 12 digits. Exponents
/// are found in double, where residuals of 1e-9 still have digits, and finished in long double.
using Real = long double;
template <typename T>
using Numbers = std::vector<T>;
using Vector = Numbers<Real>;

/// Column-major matrix.
template <typename T>
struct Columns {
  std::size_t rows, columns;
  Numbers<T> value;
  Columns(std::size_t r, std::size_t c) : rows(r), columns(c), value(r * c) {}
  T* column(std::size_t j) { return value.data() + j * rows; }
  T& operator()(std::size_t i, std::size_t j) { return value[j * rows + i]; }
};
/// Householder reflections that make the first n columns upper triangular, applied to all.
template <typename T>
void triangularise(Columns<T>& a, std::size_t n) {
  Numbers<T> v(a.rows);
  for (std::size_t k = 0; k < n; ++k) {
    T norm = 0;
    for (std::size_t i = k; i < a.rows; ++i) norm += a(i, k) * a(i, k);
    if (norm == 0) continue;
    norm = std::sqrt(norm);
    if (a(k, k) > 0) norm = -norm;
    for (std::size_t i = k; i < a.rows; ++i) v[i] = a(i, k);
    v[k] -= norm;
    T square = 0;
    for (std::size_t i = k; i < a.rows; ++i) square += v[i] * v[i];
    for (std::size_t j = k; j < a.columns; ++j) {
      T* const to = a.column(j);
      T dot = 0;
      for (std::size_t i = k; i < a.rows; ++i) dot += v[i] * to[i];
      dot *= 2 / square;
      for (std::size_t i = k; i < a.rows; ++i) to[i] -= dot * v[i];
    }
  }
}

/// Solves R x = column j with R the triangle of the first n columns. A column without weight gets
/// 0.
template <typename T>
Numbers<T> back_substituted(Columns<T>& a, std::size_t n, std::size_t j) {
  Numbers<T> x(n);
  for (std::size_t k = n; k-- > 0;) {
    T sum = a(k, j);
    for (std::size_t m = k + 1; m < n; ++m) sum -= a(k, m) * x[m];
    x[k] = a(k, k) == 0 ? 0 : sum / a(k, k);
  }
  return x;
}

}  // namespace quasi::gw::fit
