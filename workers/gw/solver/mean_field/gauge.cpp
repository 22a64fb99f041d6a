#include "workers/gw/solver/mean_field/gauge.hpp"

#include <lapacke.h>

#include <cmath>
#include <utility>

#include "workers/backend/error.hpp"

namespace quasi::gw {
namespace {

using Cplx = std::complex<double>;

/// Returns a function of G without symmetry. It is smooth, so that all machines give an equal
/// number up to rounding.
double fixed_operator(const IVec3& g) {
  return std::sin(0.37 * g[0] + 0.1) + 0.71 * std::sin(0.53 * g[1] + 0.2) +
         0.43 * std::sin(0.29 * g[2] + 0.31 * g[0] + 0.3);
}

/// Returns the fixed operator of all components at all G, [n_spinor][n_pw].
std::vector<double> fixed_operators(const std::vector<IVec3>& g, int n_spinor) {
  std::vector<double> h;
  for (const IVec3& v : g) h.push_back(fixed_operator(v));
  // The axes change places for ↓, so that the operator has no symmetry of spin either.
  for (std::size_t i = 0; n_spinor == 2 && i < g.size(); ++i)
    h.push_back(0.6 - fixed_operator({g[i][2], g[i][0], g[i][1]}));
  return h;
}

}  // namespace

void fix_gauge(const std::vector<IVec3>& g, const std::vector<double>& energy_ry,
               double tolerance_ry, std::vector<Cplx>& vectors, int n_spinor) {
  const std::vector<double> h = fixed_operators(g, n_spinor);
  const std::size_t n_pw = h.size();  // of both components
  const std::size_t n_bands = vectors.size() / n_pw;
  std::vector<std::pair<std::size_t, std::size_t>> groups;
  for (std::size_t first = 0; first < n_bands;) {
    std::size_t end = first + 1;
    while (end < n_bands && energy_ry[end] - energy_ry[end - 1] < tolerance_ry) ++end;
    groups.emplace_back(first, end);
    first = end;
  }
  bool failed = false;
#pragma omp parallel for schedule(dynamic) reduction(|| : failed)
  for (std::size_t group = 0; group < groups.size(); ++group) {
    const auto [first, end] = groups[group];
    const std::size_t d = end - first;
    if (d > 1) {
      // The matrix is column-major d × d: H_ij = ⟨i|h|j⟩.
      std::vector<Cplx> small(d * d);
      for (std::size_t i = 0; i < d; ++i)
        for (std::size_t j = 0; j < d; ++j) {
          Cplx sum;
          for (std::size_t p = 0; p < n_pw; ++p)
            sum +=
                std::conj(vectors[(first + i) * n_pw + p]) * h[p] * vectors[(first + j) * n_pw + p];
          small[i + j * d] = sum;
        }
      std::vector<double> values(d);
      if (LAPACKE_zheevd(LAPACK_COL_MAJOR, 'V', 'L', static_cast<lapack_int>(d),
                         reinterpret_cast<lapack_complex_double*>(small.data()),
                         static_cast<lapack_int>(d), values.data()) != 0)
        failed = true;
      std::vector<Cplx> rotated(d * n_pw);
      for (std::size_t i = 0; i < d; ++i)
        for (std::size_t j = 0; j < d; ++j)
          for (std::size_t p = 0; p < n_pw; ++p)
            rotated[i * n_pw + p] += small[j + i * d] * vectors[(first + j) * n_pw + p];
      std::copy(rotated.begin(), rotated.end(),
                vectors.begin() + static_cast<std::ptrdiff_t>(first * n_pw));
    }
  }
  if (failed) throw NotConverged("fixing the gauge of a multiplet failed");
#pragma omp parallel for schedule(static)
  for (std::size_t n = 0; n < n_bands; ++n) {
    Cplx* c = vectors.data() + n * n_pw;
    std::size_t largest = 0;
    double modulus = std::abs(c[0]);
    // The margin makes the choice among equal moduli independent of rounding.
    for (std::size_t p = 1; p < n_pw; ++p)
      if (const double other = std::abs(c[p]); other > modulus + 1e-6) {
        largest = p;
        modulus = other;
      }
    const Cplx phase = std::conj(c[largest]) / std::abs(c[largest]);
    for (std::size_t p = 0; p < n_pw; ++p) c[p] *= phase;
  }
}

}  // namespace quasi::gw
