#pragma once

#include <cblas.h>

#include <complex>
#include <cstdint>
#include <vector>

#include "workers/thermal/kernels/three_phonon/process_3ph.hpp"

namespace quasi::thermal {

using Complex64 = std::complex<double>;
using Complex32 = std::complex<float>;

/// Row-major C = A·B, complex.
inline void multiply(int m, int n, int k, const Complex64* a, const Complex64* b, Complex64* c) {
  const Complex64 one = 1.0;
  const Complex64 zero = 0.0;
  cblas_zgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, &one, a, k, b, n, &zero, c, n);
}

inline void multiply(int m, int n, int k, const Complex32* a, const Complex32* b, Complex32* c) {
  const Complex32 one = 1.0f;
  const Complex32 zero = 0.0f;
  cblas_cgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, &one, a, k, b, n, &zero, c, n);
}

/// One candidate that passed the test, before its matrix element is known.
struct Accepted {
  std::int32_t first;   ///< λ', or ~λ' for emission
  std::int32_t second;  ///< λ''
  double mismatch_rad_ps;
  double width_squared;
};

/// What one thread works in; reused from row to row.
struct Workspace {
  std::vector<Complex64> box;     ///< [c][b][a][nb][nb]
  std::vector<Complex64> stage1;  ///< [c][b][N1][nb][nb]
  std::vector<Complex64> stage2;  ///< [c][N2][N1][nb][nb]
  std::vector<Accepted> accepted;
  std::vector<RowSums3> sums;  ///< [nT]
};

/// What the last products are made of, and where they go, in one precision.
template <typename Real>
struct LastProducts {
  std::vector<std::complex<Real>> stage2;    ///< as in Workspace, rounded; unused in FP64
  std::vector<std::complex<Real>> planes;    ///< [k of a group][N2][N1][nb][nb]
  std::vector<std::complex<Real>> products;  ///< [nb][nb] A·conj(e''), one row a second branch
};
template <typename Real>
struct LastFactors {
  const std::complex<Real>* e = nullptr;         ///< [n_modes][nb]
  const std::complex<Real>* reversed = nullptr;  ///< [n_modes][nb] conj(e(−q))
  const std::complex<Real>* phase = nullptr;     ///< of the third axis
};

/// n and √(n(n+1)) of every mode at one temperature; zero for inactive ones.
struct OccupationTables {
  double temperature_k = 0.0;
  std::vector<double> n;
  std::vector<double> s;
};

}  // namespace quasi::thermal
