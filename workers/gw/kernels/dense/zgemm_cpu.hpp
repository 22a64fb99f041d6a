#pragma once

#include <cblas.h>

#include <complex>
#include <cstdint>

#include "workers/backend/team/blas_threads.hpp"

namespace quasi::gw {

/// A row-major matrix in host memory; `stride` is the distance between rows in numbers.
struct ConstMatrix {
  const std::complex<double>* data;
  std::int64_t stride;
};
struct MutableMatrix {
  std::complex<double>* data;
  std::int64_t stride;
};
/// Sizes and factors of C[m][n] = alpha A[m][k]·op(B) + beta C. op(B) is B[k][n], or B[n][k]
/// transposed or conjugate transposed.
struct ProductShape {
  CBLAS_TRANSPOSE transpose_b;
  std::int64_t m, n, k;
  std::complex<double> alpha{1.0, 0.0}, beta{0.0, 0.0};
};

/// Computes one product of complex matrices by BLAS.
inline void zgemm(const ProductShape& shape, ConstMatrix a, ConstMatrix b, MutableMatrix c) {
  const ThreadedBlas threads(8.0 * static_cast<double>(shape.m * shape.n) *
                             static_cast<double>(shape.k));
  cblas_zgemm(CblasRowMajor, CblasNoTrans, shape.transpose_b, static_cast<int>(shape.m),
              static_cast<int>(shape.n), static_cast<int>(shape.k), &shape.alpha, a.data,
              static_cast<int>(a.stride), b.data, static_cast<int>(b.stride), &shape.beta, c.data,
              static_cast<int>(c.stride));
}

}  // namespace quasi::gw
