#include "workers/gw/kernels/dense/dense_kernels_cpu.hpp"

#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "workers/backend/error.hpp"
#include "workers/backend/team/blas_threads.hpp"
#include "workers/gw/kernels/dense/zgemm_cpu.hpp"

namespace quasi::gw {
namespace {

/// Returns the operations of an eigenproblem or an inversion of the given order, to a factor of 2.
double dense_flop(lapack_int order) { return 16.0 * std::pow(static_cast<double>(order), 3.0); }

void eigen_symmetric(View<const Cplx, 2> matrix, View<double, 1> values, View<Cplx, 2> vectors) {
  const auto n = static_cast<lapack_int>(matrix.extent[0]);
  const std::int64_t n_lowest = values.extent[0];
  std::vector<double> a(static_cast<std::size_t>(matrix.size()));
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = matrix.data[i].real();
  std::vector<double> all(static_cast<std::size_t>(n));
  const ThreadedBlas threads(dense_flop(n) / 2.0);
  const lapack_int info = LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'V', 'L', n, a.data(), n, all.data());
  if (info != 0)
    throw NotConverged("diagonalisation of order " + std::to_string(n) + " failed, LAPACK info " +
                       std::to_string(info) +
                       "; check the potential for values that are no numbers");
  std::copy(all.begin(), all.begin() + n_lowest, values.data);
  std::copy(a.begin(), a.begin() + n_lowest * n, vectors.data);
}

bool is_real(const Cplx* values, std::int64_t count) {
  return std::all_of(values, values + count, [](const Cplx& h) { return h.imag() == 0.0; });
}

[[noreturn]] void throw_not_definite(lapack_int order, lapack_int minor) {
  throw NotConverged("dielectric matrix of order " + std::to_string(order) +
                     " is not positive definite at its leading minor " + std::to_string(minor) +
                     "; check the gap and the energies of the mean field");
}

/// Inverts a real symmetric matrix, with a quarter of the operations. The real parts move to the
/// front of the matrix, so that no further memory is needed.
void invert_real_definite(View<Cplx, 2> matrix) {
  const std::int64_t n = matrix.extent[0];
  const auto order = static_cast<lapack_int>(n);
  auto* const a = reinterpret_cast<double*>(matrix.data);
  for (std::int64_t i = 1; i < n * n; ++i) a[i] = a[2 * i];
  {
    const ThreadedBlas threads(dense_flop(order) / 8.0);
    lapack_int info = LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'L', order, a, order);
    if (info > 0) throw_not_definite(order, info);
    info = LAPACKE_dpotri(LAPACK_COL_MAJOR, 'L', order, a, order);
    if (info != 0)
      throw NotConverged("inversion of a matrix of order " + std::to_string(order) + " failed");
  }
  // The column-major lower triangle is the row-major upper one.
  for (std::int64_t i = n * n - 1; i >= 0; --i) matrix.data[i] = {a[i], 0.0};
  for (std::int64_t g = 0; g < n; ++g)
    for (std::int64_t h = 0; h < g; ++h) matrix(g, h) = matrix(h, g);
}

}  // namespace

void CpuDenseKernels::multiply_transposed(View<const Cplx, 2> a, View<const Cplx, 2> b,
                                          View<Cplx, 2> product) {
  const std::int64_t inner = a.extent[1];
  zgemm({CblasTrans, a.extent[0], b.extent[0], inner}, {a.data, inner}, {b.data, inner},
        {product.data, b.extent[0]});
}

void CpuDenseKernels::add_adjoint_product(const AdjointProduct<double>& product) {
  const auto& [rows, columns, depth, alpha, a, a_stride, b, b_stride, c, c_stride] = product;
  const ThreadedBlas threads(2.0 * static_cast<double>(rows * columns) *
                             static_cast<double>(depth));
  cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, static_cast<int>(rows),
              static_cast<int>(columns), static_cast<int>(depth), alpha, a,
              static_cast<int>(a_stride), b, static_cast<int>(b_stride), 1.0, c,
              static_cast<int>(c_stride));
}

void CpuDenseKernels::add_adjoint_product(const AdjointProduct<Cplx>& product) {
  const auto& [rows, columns, depth, alpha, a, a_stride, b, b_stride, c, c_stride] = product;
  const Cplx factor{alpha, 0.0}, one{1.0, 0.0};
  const ThreadedBlas threads(8.0 * static_cast<double>(rows * columns) *
                             static_cast<double>(depth));
  cblas_zgemm(CblasRowMajor, CblasConjTrans, CblasNoTrans, static_cast<int>(rows),
              static_cast<int>(columns), static_cast<int>(depth), &factor, a,
              static_cast<int>(a_stride), b, static_cast<int>(b_stride), &one, c,
              static_cast<int>(c_stride));
}

void CpuDenseKernels::invert_positive_definite(View<Cplx, 2> matrix) {
  if (is_real(matrix.data, matrix.size())) {
    invert_real_definite(matrix);
    return;
  }
  const auto n = static_cast<lapack_int>(matrix.extent[0]);
  auto* a = reinterpret_cast<lapack_complex_double*>(matrix.data);
  const ThreadedBlas threads(dense_flop(n) / 2.0);
  // The row-major upper triangle is the column-major lower one of the transpose. The conjugation
  // cancels in the end.
  lapack_int info = LAPACKE_zpotrf(LAPACK_COL_MAJOR, 'L', n, a, n);
  if (info > 0) throw_not_definite(n, info);
  info = LAPACKE_zpotri(LAPACK_COL_MAJOR, 'L', n, a, n);
  if (info != 0)
    throw NotConverged("inversion of a matrix of order " + std::to_string(n) + " failed");
  for (std::int64_t g = 0; g < n; ++g)
    for (std::int64_t h = 0; h < g; ++h) matrix(g, h) = std::conj(matrix(h, g));
}

void CpuDenseKernels::invert_general(View<Cplx, 2> matrix) {
  const auto n = static_cast<lapack_int>(matrix.extent[0]);
  auto* a = reinterpret_cast<lapack_complex_double*>(matrix.data);
  const ThreadedBlas threads(dense_flop(n) / 2.0);
  std::vector<lapack_int> pivot(static_cast<std::size_t>(n));
  lapack_int info = LAPACKE_zgetrf(LAPACK_COL_MAJOR, n, n, a, n, pivot.data());
  if (info == 0) info = LAPACKE_zgetri(LAPACK_COL_MAJOR, n, a, n, pivot.data());
  if (info != 0)
    throw NotConverged("dielectric matrix of order " + std::to_string(n) + " is singular");
}

void CpuDenseKernels::eigen_hermitian(View<const Cplx, 2> matrix, View<double, 1> values,
                                      View<Cplx, 2> vectors) {
  const auto n = static_cast<lapack_int>(matrix.extent[0]);
  const std::int64_t n_lowest = values.extent[0];
  if (is_real(matrix.data, matrix.size())) {
    eigen_symmetric(matrix, values, vectors);
    return;
  }
  // The transpose of a row-major Hermitian matrix is its conjugate. The matrix is conjugated first,
  // so that LAPACK's column-major view is the matrix itself and its columns are our rows.
  std::vector<Cplx> a(static_cast<std::size_t>(n) * static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = std::conj(matrix.data[i]);
  std::vector<double> all(static_cast<std::size_t>(n));
  const ThreadedBlas threads(dense_flop(n));
  const lapack_int info =
      LAPACKE_zheevd(LAPACK_COL_MAJOR, 'V', 'L', n,
                     reinterpret_cast<lapack_complex_double*>(a.data()), n, all.data());
  if (info != 0)
    throw NotConverged("diagonalisation of order " + std::to_string(n) + " failed, LAPACK info " +
                       std::to_string(info));
  std::copy(all.begin(), all.begin() + n_lowest, values.data);
  std::copy(a.begin(), a.begin() + n_lowest * n, vectors.data);
}

}  // namespace quasi::gw
