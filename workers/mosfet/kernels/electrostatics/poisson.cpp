#include "workers/mosfet/kernels/electrostatics/poisson.hpp"

#include <cblas.h>
#include <lapacke.h>

#include <algorithm>
#include <string>

#include "workers/backend/error.hpp"
#include "workers/mosfet/physics/poisson_stencil.hpp"
#include "workers/mosfet/physics/working_units.hpp"

namespace quasi::mosfet {

std::vector<double> poisson_residual(const Structure& s, const PotentialBoundary& boundary,
                                     const std::vector<double>& potential_v,
                                     const std::vector<double>& density_nm3) {
  std::vector<double> residual(potential_v.size(), 0.0), face_x;
  for (int j = 0; j < s.nz; ++j) face_x.push_back(s.face_x(j));
  const PoissonStencil stencil{s.nx, s.nz, s.dx_nm, s.dz_nm, s.eps_cell.data(), face_x.data()};
#pragma omp parallel for schedule(static)
  for (int i = 0; i < s.nx; ++i)
    for (int j = 0; j < s.nz; ++j) {
      const std::size_t at = static_cast<std::size_t>(i) * s.nz + j;
      if (!boundary.fixed[at])
        residual[at] =
            stencil.residual(potential_v.data(), density_nm3[at], s.doping_nm3[at], i, j);
    }
  return residual;
}

ColumnMatrix::ColumnMatrix(const Structure& s, const PotentialBoundary& boundary,
                           const std::vector<double>& responses)
    : nx_(s.nx),
      nz_(s.nz),
      blocks_(static_cast<std::size_t>(s.nx) * s.nz * s.nz, 0.0),
      couplings_(static_cast<std::size_t>(s.nx > 1 ? s.nx - 1 : 0) * s.nz, 0.0) {
  const auto fixed = [&](int i, int j) {
    return boundary.fixed[static_cast<std::size_t>(i) * s.nz + j] != 0;
  };
#pragma omp parallel for schedule(static)
  for (int i = 0; i < nx_; ++i) {
    const double width = s.column_width_nm(i);
    double* block = &blocks_[static_cast<std::size_t>(i) * nz_ * nz_];
    const double* response = &responses[static_cast<std::size_t>(i) * nz_ * nz_];
    const double charge = kChargeOverEpsilon0_v_nm * width * s.dz_nm * s.dz_nm;
    for (int j = 0; j < nz_; ++j) {
      if (fixed(i, j)) {
        block[j * nz_ + j] = 1.0;
        continue;
      }
      for (int k = 0; k < nz_; ++k)
        if (!fixed(i, k)) block[j * nz_ + k] = charge * response[j * nz_ + k];
      double diagonal = 0.0;
      for (const int k : {j - 1, j + 1}) {
        if (k < 0 || k >= nz_) continue;
        const double face = s.eps_cell[k < j ? k : j] * width / s.dz_nm;
        diagonal += face;
        if (!fixed(i, k)) block[j * nz_ + k] -= face;
      }
      const double face = s.face_x(j) / s.dx_nm;
      if (i > 0) diagonal += face;
      if (i < nx_ - 1) diagonal += face;
      block[j * nz_ + j] += diagonal;
      if (i < nx_ - 1 && !fixed(i + 1, j))
        couplings_[static_cast<std::size_t>(i) * nz_ + j] = -face;
    }
  }
}

void ColumnMatrix::factorise() {
  inverse_ = blocks_;
  std::vector<lapack_int> pivots(static_cast<std::size_t>(nz_));
  for (int i = 0; i < nx_; ++i) {
    double* block = &inverse_[static_cast<std::size_t>(i) * nz_ * nz_];
    if (i > 0) {
      const double* before = block - static_cast<std::ptrdiff_t>(nz_) * nz_;
      const double* coupling = &couplings_[static_cast<std::size_t>(i - 1) * nz_];
      for (int j = 0; j < nz_; ++j)
        for (int k = 0; k < nz_; ++k)
          block[j * nz_ + k] -= coupling[j] * before[j * nz_ + k] * coupling[k];
    }
    // The blocks are symmetric, so that the order of LAPACK needs no copies.
    int info = LAPACKE_dgetrf(LAPACK_COL_MAJOR, nz_, nz_, block, nz_, pivots.data());
    if (info == 0) info = LAPACKE_dgetri(LAPACK_COL_MAJOR, nz_, block, nz_, pivots.data());
    if (info != 0)
      throw NotConverged("Poisson's Newton matrix is singular in column " + std::to_string(i));
  }
}

void ColumnMatrix::solve(double* x) const {
  std::vector<double> result(static_cast<std::size_t>(nz_));
  const auto apply = [&](int i, double* column) {
    cblas_dgemv(CblasRowMajor, CblasNoTrans, nz_, nz_, 1.0,
                &inverse_[static_cast<std::size_t>(i) * nz_ * nz_], nz_, column, 1, 0.0,
                result.data(), 1);
  };
  for (int i = 0; i + 1 < nx_; ++i) {  // y_{i+1} = r_{i+1} − C_i S_i⁻¹ y_i
    apply(i, x + static_cast<std::ptrdiff_t>(i) * nz_);
    for (int j = 0; j < nz_; ++j)
      x[(i + 1) * nz_ + j] -= couplings_[static_cast<std::size_t>(i) * nz_ + j] * result[j];
  }
  for (int i = nx_ - 1; i >= 0; --i) {  // x_i = S_i⁻¹(y_i − C_i x_{i+1})
    double* column = x + static_cast<std::ptrdiff_t>(i) * nz_;
    if (i + 1 < nx_)
      for (int j = 0; j < nz_; ++j)
        column[j] -= couplings_[static_cast<std::size_t>(i) * nz_ + j] * column[nz_ + j];
    apply(i, column);
    std::copy(result.begin(), result.end(), column);
  }
}

std::vector<double> ColumnMatrix::multiply(const std::vector<double>& x) const {
  std::vector<double> y(x.size(), 0.0);
  for (int i = 0; i < nx_; ++i)
    for (int j = 0; j < nz_; ++j) {
      const std::size_t at = static_cast<std::size_t>(i) * nz_ + j;
      double sum = 0.0;
      for (int k = 0; k < nz_; ++k)
        sum += blocks_[at * nz_ + k] * x[static_cast<std::size_t>(i) * nz_ + k];
      if (i > 0) sum += couplings_[at - nz_] * x[at - nz_];
      if (i + 1 < nx_) sum += couplings_[at] * x[at + nz_];
      y[at] = sum;
    }
  return y;
}

}  // namespace quasi::mosfet
