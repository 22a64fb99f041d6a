#pragma once

#include <cblas.h>

#include <complex>
#include <cstdint>

namespace quasi::gw {

/// C[m][n] = alpha A[m][k]·op(B) + beta C, row-major; op(B) is B[k][n], or B[n][k] (conjugate)
/// transposed.
inline void zgemm(CBLAS_TRANSPOSE transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
                  std::complex<double> alpha, const std::complex<double>* a, std::int64_t lda,
                  const std::complex<double>* b, std::int64_t ldb, std::complex<double> beta,
                  std::complex<double>* c, std::int64_t ldc) {
  cblas_zgemm(CblasRowMajor, CblasNoTrans, transpose_b, static_cast<int>(m), static_cast<int>(n),
              static_cast<int>(k), &alpha, a, static_cast<int>(lda), b, static_cast<int>(ldb),
              &beta, c, static_cast<int>(ldc));
}

}  // namespace quasi::gw
