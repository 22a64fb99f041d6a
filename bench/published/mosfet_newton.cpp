#include "bench/published/mosfet_newton.hpp"

#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "workers/backend/error.hpp"
#include "workers/backend/ranks/parallel_failure.hpp"
#include "workers/backend/stopwatch.hpp"
#include "workers/mosfet/physics/chord.hpp"

namespace quasi::mosfet {
namespace {

/// Finds the transported levels of one column, [subbands] and [subbands][interior].
void cold_levels(const Structure& s, int family, const double* potential_v, double* energy_ev,
                 double* vectors) {
  const int n = s.interior();
  const Structure::Family& f = s.families[static_cast<std::size_t>(family)];
  std::vector<double> diagonal(static_cast<std::size_t>(n)), off = f.off_ev,
                                                             found(static_cast<std::size_t>(n));
  off.resize(static_cast<std::size_t>(n), 0.0);
  for (int k = 0; k < n; ++k)
    diagonal[static_cast<std::size_t>(k)] =
        f.base_ev[static_cast<std::size_t>(k)] - potential_v[k + 1];
  std::vector<lapack_int> support(2 * static_cast<std::size_t>(s.subbands));
  lapack_int count = 0;
  lapack_logical accurate = 1;
  const int info = LAPACKE_dstemr(LAPACK_COL_MAJOR, 'V', 'I', n, diagonal.data(), off.data(), 0.0,
                                  0.0, 1, s.subbands, &count, found.data(), vectors, n, s.subbands,
                                  support.data(), &accurate);
  if (info != 0 || count != s.subbands)
    throw NotConverged("Schrödinger problem of a column: dstemr returned " + std::to_string(info));
  const double factor = 1.0 / std::sqrt(s.dz_nm);
  for (int p = 0; p < s.subbands; ++p) {
    energy_ev[p] = found[static_cast<std::size_t>(p)];
    for (int k = 0; k < n; ++k) vectors[p * n + k] *= factor;
  }
}

/// Levels of every valley as the published code holds them: the two valleys that share their levels
/// are solved twice.
struct ValleyLevels {
  std::vector<double> energy_ev;  ///< [nx][n_valleys][subbands]
  std::vector<double> vectors;    ///< [nx][n_valleys][subbands][interior]
};

ValleyLevels levels_of_valleys(const Structure& s, const std::vector<double>& potential_v) {
  const int n = s.interior(), np = s.subbands, nv = s.n_valleys();
  ValleyLevels levels;
  levels.energy_ev.resize(static_cast<std::size_t>(s.nx) * nv * np);
  levels.vectors.resize(levels.energy_ev.size() * n);
  ParallelFailure failure;
#pragma omp parallel for schedule(static)
  for (int task = 0; task < s.nx * nv; ++task)
    failure.guard([&] {
      cold_levels(s, s.family_of[static_cast<std::size_t>(task % nv)],
                  &potential_v[static_cast<std::size_t>(task / nv) * s.nz],
                  &levels.energy_ev[static_cast<std::size_t>(task) * np],
                  &levels.vectors[static_cast<std::size_t>(task) * np * n]);
    });
  failure.rethrow();
  return levels;
}

/// Copies the levels into the arrays by family, with the sign that solve_level() chooses.
void store_by_family(const Structure& s, const ValleyLevels& levels, std::vector<double>* energy_ev,
                     std::vector<double>* psi) {
  const int n = s.interior(), np = s.subbands, nv = s.n_valleys();
  for (int v = nv - 1; v >= 0; --v)
    for (int p = 0; p < np; ++p)
      for (int i = 0; i < s.nx; ++i) {
        const std::size_t at =
            (static_cast<std::size_t>(s.family_of[static_cast<std::size_t>(v)]) * np + p) * s.nx +
            i;
        const std::size_t from = (static_cast<std::size_t>(i) * nv + v) * np + p;
        const double* state = &levels.vectors[from * n];
        (*energy_ev)[at] = levels.energy_ev[from];
        const double sign =
            *std::find_if(state, state + n, [](double y) { return std::fabs(y) > 1e-3; }) < 0.0
                ? -1.0
                : 1.0;
        for (int k = 0; k < n; ++k) (*psi)[at * s.nz + k + 1] = sign * state[k];
      }
}

/// Density response [nx][nz][nz] of the transported levels; the published sum ends with them.
std::vector<double> transported_response(const Structure& s, const ValleyLevels& levels,
                                         const std::vector<double>& sheet_nm2) {
  const int n = s.interior(), np = s.subbands, nv = s.n_valleys(), nx = s.nx, nz = s.nz;
  std::vector<double> responses(static_cast<std::size_t>(nx) * nz * nz, 0.0);
#pragma omp parallel for schedule(static)
  for (int i = 0; i < nx; ++i) {
    double* response = &responses[static_cast<std::size_t>(i) * nz * nz];
    double largest = 0.0;
    for (int k = 0; k < nv * np; ++k)
      largest = std::max(largest, sheet_nm2[static_cast<std::size_t>(k) * nx + i]);
    for (int v = 0; v < nv; ++v)
      for (int p = 0; p < np; ++p)
        for (int q = p + 1; q < np; ++q) {
          const std::size_t first = (static_cast<std::size_t>(i) * nv + v) * np;
          const double gap = levels.energy_ev[first + q] - levels.energy_ev[first + p];
          const double change = sheet_nm2[(static_cast<std::size_t>(v) * np + p) * nx + i] -
                                sheet_nm2[(static_cast<std::size_t>(v) * np + q) * nx + i];
          const double weight = 4.0 * response_quotient(change, gap, response_cap(largest));
          if (!(weight > 0.0)) continue;
          const double *a = &levels.vectors[(first + p) * n], *b = &levels.vectors[(first + q) * n];
          for (int j = 0; j < n; ++j) {
            const double factor = weight * a[j] * b[j];
            for (int k = 0; k < n; ++k) response[(j + 1) * nz + k + 1] += factor * a[k] * b[k];
          }
        }
  }
  return responses;
}

/// Cholesky factor of a ColumnMatrix in LAPACK's band storage.
class BandedFactor : public NewtonMatrix {
 public:
  explicit BandedFactor(const ColumnMatrix& matrix)
      : order_(matrix.nx() * matrix.nz()),
        band_(matrix.nz()),
        factor_(static_cast<std::size_t>(order_) * (band_ + 1), 0.0) {
    const int nx = matrix.nx(), nz = matrix.nz();
    for (int i = 0; i < nx; ++i)
      for (int j = 0; j < nz; ++j) {
        double* column = &factor_[(static_cast<std::size_t>(i) * nz + j) * (band_ + 1)];
        for (int k = j; k < nz; ++k)
          column[k - j] = matrix.blocks()[(static_cast<std::size_t>(i) * nz + k) * nz + j];
        if (i + 1 < nx) column[nz] = matrix.couplings()[static_cast<std::size_t>(i) * nz + j];
      }
    const int info =
        LAPACKE_dpbtrf(LAPACK_COL_MAJOR, 'L', order_, band_, factor_.data(), band_ + 1);
    if (info != 0) throw NotConverged("the published Newton matrix is not positive definite");
  }

  void solve(double* x) const override {
    LAPACKE_dpbtrs(LAPACK_COL_MAJOR, 'L', order_, band_, 1, factor_.data(), band_ + 1, x, order_);
  }

 private:
  int order_, band_;
  std::vector<double> factor_;  ///< [order][band+1]
};

}  // namespace

std::unique_ptr<NewtonMatrix> PublishedNewton::linearise(const TransportProblem& problem,
                                                         const PotentialBoundary& boundary,
                                                         const std::vector<double>& sheet_nm2,
                                                         const std::vector<double>& potential_v,
                                                         std::vector<double>* energy_ev,
                                                         std::vector<double>* psi) const {
  const Structure& s = problem.structure;
  Stopwatch clock;
  const ValleyLevels levels = levels_of_valleys(s, potential_v);
  store_by_family(s, levels, energy_ev, psi);
  seconds_.levels += clock.seconds();
  clock = Stopwatch();
  const ColumnMatrix matrix(s, boundary, transported_response(s, levels, sheet_nm2));
  seconds_.response += clock.seconds();
  clock = Stopwatch();
  auto factor = std::make_unique<BandedFactor>(matrix);
  seconds_.linear += clock.seconds();
  return factor;
}

}  // namespace quasi::mosfet
