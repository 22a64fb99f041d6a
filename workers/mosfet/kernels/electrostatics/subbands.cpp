#include "workers/mosfet/kernels/electrostatics/subbands.hpp"

#include <cblas.h>
#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "workers/backend/error.hpp"
#include "workers/mosfet/physics/chord.hpp"
#include "workers/mosfet/physics/tridiagonal.hpp"

namespace quasi::mosfet {

void all_states(const Structure& s, int family, const double* potential_v, double* energy_ev,
                double* vectors) {
  const int n = s.interior();
  const Structure::Family& f = s.families[static_cast<std::size_t>(family)];
  std::vector<double> off = f.off_ev;
  off.push_back(0.0);
  for (int k = 0; k < n; ++k)
    energy_ev[k] = f.base_ev[static_cast<std::size_t>(k)] - potential_v[k + 1];
  // The array is column-major, so each column of LAPACK's matrix is one row here.
  const int info = LAPACKE_dstevd(LAPACK_COL_MAJOR, 'V', n, energy_ev, off.data(), vectors, n);
  if (info != 0)
    throw NotConverged("Schrödinger problem of a column: dstevd returned " + std::to_string(info));
  const double factor = 1.0 / std::sqrt(s.dz_nm);
  for (int k = 0; k < n * n; ++k) vectors[k] *= factor;
}

bool solve_levels(const Structure& s, const std::vector<double>& potential_v, bool warm,
                  std::vector<double>* energy_ev, std::vector<double>* psi) {
  const int n = s.interior();
  bool good = true;
#pragma omp parallel reduction(&& : good)
  {
    std::vector<double> diagonal(n), forward(n), backward(n);
#pragma omp for schedule(static)
    for (int column = 0; column < s.nx * s.n_families(); ++column) {
      const int family = column / s.nx, i = column % s.nx;
      const Structure::Family& f = s.families[static_cast<std::size_t>(family)];
      for (int k = 0; k < n; ++k)
        diagonal[k] = f.base_ev[k] - potential_v[static_cast<std::size_t>(i) * s.nz + k + 1];
      const Tridiagonal t{diagonal.data(), f.off_ev.data(), n,
                          gershgorin_bound(diagonal.data(), f.off_ev.data(), n)};
      for (int p = 0; p < s.subbands; ++p) {
        const std::size_t at = (static_cast<std::size_t>(family) * s.subbands + p) * s.nx + i;
        good = solve_level(t, p, warm, s.dz_nm, &(*energy_ev)[at],
                           {&(*psi)[at * s.nz + 1], forward.data(), backward.data()}) &&
               good;
      }
    }
  }
  return good;
}

Subbands solve_subbands(const Structure& s, const std::vector<double>& potential_v,
                        const Subbands& near) {
  const auto count = static_cast<std::size_t>(s.n_families()) * s.subbands * s.nx;
  const bool warm = !near.energy_ev.empty();
  Subbands out = near;
  if (!warm) out = {std::vector<double>(count), std::vector<double>(count * s.nz, 0.0)};
  if (!solve_levels(s, potential_v, warm, &out.energy_ev, &out.psi))
    throw NotConverged("a subband level failed its certificate by Sturm counts");
  return out;
}

void column_response(const Structure& s, const ColumnStates& states, const double* sheet_nm2,
                     const double* diagonal_nm2_ev, bool clip, double* response) {
  const int n = s.interior();
  double largest = 0.0;
  for (int k = 0; k < s.n_valleys() * s.subbands; ++k) largest = std::max(largest, sheet_nm2[k]);
  const double cap = response_cap(largest);
  std::vector<double> products, weights;  // rows ψ_pψ_p', later scaled by √|weight|
  for (int family = 0; family < s.n_families(); ++family) {
    // Valleys of one family share ψ, so their densities are added before the products are formed.
    std::vector<double> sheet(n, 0.0), slope(n, 0.0);
    for (int v = 0; v < s.n_valleys(); ++v) {
      if (s.family_of[static_cast<std::size_t>(v)] != family) continue;
      for (int p = 0; p < s.subbands; ++p) {
        sheet[p] += sheet_nm2[v * s.subbands + p];
        if (diagonal_nm2_ev != nullptr) slope[p] += diagonal_nm2_ev[v * s.subbands + p];
      }
    }
    const double* energy = states.energies[static_cast<std::size_t>(family)];
    const double* psi = states.vectors[static_cast<std::size_t>(family)];
    for (int p = 0; p < s.subbands; ++p) {
      for (int q = p; q < n; ++q) {
        double weight = 0.0;
        if (q == p) {
          weight = 2.0 * slope[p];
        } else {
          const double difference = sheet[p] - (q < s.subbands ? sheet[q] : 0.0);
          weight = 4.0 * response_quotient(difference, energy[q] - energy[p], cap);
        }
        if (weight == 0.0 || (clip && weight < 0.0)) continue;
        weights.push_back(weight);
        for (int k = 0; k < n; ++k) products.push_back(psi[p * n + k] * psi[q * n + k]);
      }
    }
  }
  const int rank = static_cast<int>(weights.size());
  std::vector<double> scaled(products);
  for (int r = 0; r < rank; ++r)
    for (int k = 0; k < n; ++k) scaled[static_cast<std::size_t>(r) * n + k] *= weights[r];
  std::fill(response, response + static_cast<std::size_t>(s.nz) * s.nz, 0.0);
  if (rank == 0) return;
  cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n, n, rank, 1.0, scaled.data(), n,
              products.data(), n, 0.0, response + s.nz + 1, s.nz);
  // The matrix becomes exactly symmetric for any order of the sums in BLAS.
  for (int j = 1; j < s.nz - 1; ++j)
    for (int k = 1; k < j; ++k) response[j * s.nz + k] = response[k * s.nz + j];
}

}  // namespace quasi::mosfet
