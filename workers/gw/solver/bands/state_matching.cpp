#include "workers/gw/solver/bands/state_matching.hpp"

#include <cblas.h>
#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/backend/team/blas_threads.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/mean_field/problem.hpp"

namespace quasi::gw {

Eigensystem eigensystem_of(std::vector<Cplx> matrix, std::size_t n) {
  Eigensystem e{std::vector<double>(n), std::move(matrix)};
  if (n > 0 && LAPACKE_zheev(LAPACK_ROW_MAJOR, 'V', 'L', static_cast<lapack_int>(n),
                             reinterpret_cast<lapack_complex_double*>(e.column.data()),
                             static_cast<lapack_int>(n), e.value.data()) != 0)
    throw NotConverged("the corrections along the band path could not be diagonalised");
  return e;
}

std::vector<Cplx> product(const std::vector<Cplx>& a, const std::vector<Cplx>& b, std::size_t n) {
  std::vector<Cplx> c(n * n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < n; ++k)
      for (std::size_t j = 0; j < n; ++j) c[i * n + j] += a[i * n + k] * b[k * n + j];
  return c;
}

std::vector<Cplx> inverse_root(const std::vector<Cplx>& a, std::size_t n) {
  const Eigensystem e = eigensystem_of(a, n);
  std::vector<Cplx> root(n * n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t x = 0; x < n; ++x)
        root[i * n + j] +=
            e.column[i * n + x] * std::conj(e.column[j * n + x]) / std::sqrt(e.value[x]);
  return root;
}

std::vector<Cplx> overlaps(const DenseStates& a, const BandGroup& bands, const PeriodicParts& b) {
  const std::size_t n_a = bands.size(), n_b = b.n_bands, n_g = a.row(),
                    n_s = static_cast<std::size_t>(a.n_spinor), n_pw = a.sphere.g.size();
  const GIndex index(a.sphere.g);
  std::vector<Cplx> gathered(n_b * n_g);
  for (std::size_t i = 0; i < b.g.size(); ++i)
    if (const std::int32_t at = index.find(b.g[i]); at >= 0)
      for (std::size_t m = 0; m < n_b * n_s; ++m)  // each component of each band
        gathered[m * n_pw + static_cast<std::size_t>(at)] = b.coefficients[m * b.g.size() + i];
  std::vector<Cplx> conjugate(n_a * n_g);
  for (std::size_t i = 0; i < conjugate.size(); ++i)
    conjugate[i] = std::conj(a.coefficients[bands.begin * n_g + i]);
  std::vector<Cplx> result(n_a * n_b);
  const Cplx one{1.0, 0.0}, zero{};
  const ThreadedBlas threads(8.0 * static_cast<double>(n_a * n_b) * static_cast<double>(n_g));
  if (n_a > 0 && n_b > 0)
    cblas_zgemm(CblasRowMajor, CblasNoTrans, CblasTrans, static_cast<int>(n_a),
                static_cast<int>(n_b), static_cast<int>(n_g), &one, conjugate.data(),
                static_cast<int>(n_g), gathered.data(), static_cast<int>(n_g), &zero, result.data(),
                static_cast<int>(n_b));
  return result;
}

std::vector<std::size_t> assigned_columns(const std::vector<double>& score, std::size_t n) {
  std::vector<std::size_t> order(n * n), to(n, n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Scores that rounding alone tells apart are ties, which the order of rows and columns decides.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::round(score[a] * 1e9) > std::round(score[b] * 1e9);
  });
  std::vector<char> taken(n, 0);
  for (const std::size_t at : order)
    if (to[at / n] == n && !taken[at % n]) {
      to[at / n] = at % n;
      taken[at % n] = 1;
    }
  return to;
}

BandGroup with_whole_multiplets(const DenseStates& states, BandGroup bands) {
  while (bands.upward && bands.end < states.energy_ry.size() &&
         states.energy_ry[bands.end] - states.energy_ry[bands.end - 1] < kDegenerate_ry)
    ++bands.end;
  while (bands.begin > 0 &&
         states.energy_ry[bands.begin] - states.energy_ry[bands.begin - 1] < kDegenerate_ry)
    --bands.begin;
  return bands;
}

}  // namespace quasi::gw
