#include "workers/gw/solver/screening/slices/sliced_inversion.hpp"

#include <algorithm>
#include <complex>
#include <string>
#include <type_traits>
#include <vector>

#include "workers/backend/error.hpp"
#include "workers/backend/unset_vector.hpp"
#include "workers/gw/model/column_slices.hpp"

namespace quasi::gw {
namespace {

inline double adjoint(double value) { return value; }
inline Cplx adjoint(const Cplx& value) { return std::conj(value); }

/// Inverts one matrix by eliminating its panels one after another. T is double or Cplx.
template <typename T>
class Elimination {
 public:
  Elimination(View<T, 2> matrix, std::int64_t slices, DeviceTeam& team)
      : a_(matrix),
        n_(matrix.extent[0]),
        slices_(slices_of_upper_triangle(n_, slices)),
        team_(team),
        step_(rows_of_panel(n_, slices)),
        panel_(static_cast<std::size_t>(step_ * n_)),
        product_(panel_.size()) {}

  void run() {
    for (std::int64_t begin = 0; begin < n_; begin += step_)
      eliminate({begin, std::min(n_, begin + step_)});
#pragma omp parallel for schedule(dynamic, 16)
    for (std::int64_t i = 0; i < n_; ++i) {
      a_(i, i) = -std::real(a_(i, i));
      for (std::int64_t j = i + 1; j < n_; ++j) a_(i, j) = -a_(i, j);
    }
  }

 private:
  /// Copies all columns of the rows K to panel_. Columns left of the diagonal are the adjoint of
  /// the stored triangle i ≤ j.
  void gather(const ElementRows& k) {
#pragma omp parallel for schedule(static)
    for (std::int64_t p = 0; p < k.size(); ++p) {
      T* const to = panel_.data() + p * n_;
      const std::int64_t row = k.begin + p;
      for (std::int64_t j = 0; j < row; ++j) to[j] = adjoint(a_(j, row));
      std::copy(&a_(row, row), &a_(row, 0) + n_, to + row);
    }
  }

  /// Returns −(A_KK)⁻¹ from the panel, [k.size()][k.size()].
  /// @throws NotConverged with the rows of the panel if A_KK is not positive definite
  UnsetVector<T> negative_inverse(const ElementRows& k) {
    const std::int64_t size = k.size();
    UnsetVector<Cplx> block(static_cast<std::size_t>(size * size));
    for (std::int64_t p = 0; p < size; ++p)
      for (std::int64_t r = 0; r < size; ++r)
        block[static_cast<std::size_t>(p * size + r)] =
            panel_[static_cast<std::size_t>(p * n_ + k.begin + r)];
    try {
      team_.first().dense().invert_positive_definite(view<Cplx>(block, size, size));
    } catch (const NotConverged& failure) {
      throw NotConverged("rows " + std::to_string(k.begin + 1) + " to " + std::to_string(k.end) +
                         " of the dielectric matrix of order " + std::to_string(n_) + ": " +
                         failure.what());
    }
    UnsetVector<T> negative(block.size());
    for (std::size_t i = 0; i < block.size(); ++i) {
      if constexpr (std::is_same_v<T, double>)
        negative[i] = -block[i].real();
      else
        negative[i] = -block[i];
    }
    return negative;
  }

  void eliminate(const ElementRows& k) {
    gather(k);
    const UnsetVector<T> inverse = negative_inverse(k);
    const auto n_slices = static_cast<std::int64_t>(slices_.size());
    // Each task makes the columns of one slice of the product −D A_K.
    team_.run_here(n_slices, [&](std::int64_t s, GwKernels& kernels) {
      const ElementRows& columns = slices_[static_cast<std::size_t>(s)];
      for (std::int64_t p = 0; p < k.size(); ++p)
        std::fill_n(product_.data() + p * n_ + columns.begin, columns.size(), T{});
      kernels.dense().add_adjoint_product(AdjointProduct<T>{.rows = k.size(),
                                                            .columns = columns.size(),
                                                            .depth = k.size(),
                                                            .alpha = 1.0,
                                                            .a = inverse.data(),
                                                            .a_stride = k.size(),
                                                            .b = panel_.data() + columns.begin,
                                                            .b_stride = n_,
                                                            .c = product_.data() + columns.begin,
                                                            .c_stride = n_});
    });
    team_.run_here(n_slices, [&](std::int64_t s, GwKernels& kernels) {
      const ElementRows& rows = slices_[static_cast<std::size_t>(s)];
      kernels.dense().add_adjoint_product(AdjointProduct<T>{.rows = rows.size(),
                                                            .columns = n_ - rows.begin,
                                                            .depth = k.size(),
                                                            .alpha = 1.0,
                                                            .a = panel_.data() + rows.begin,
                                                            .a_stride = n_,
                                                            .b = product_.data() + rows.begin,
                                                            .b_stride = n_,
                                                            .c = &a_(rows.begin, rows.begin),
                                                            .c_stride = n_});
    });
    replace(k, inverse);
  }

  /// Writes A_Kj = D A_Kj and A_KK = −D. The sums of eliminate() have changed these elements like
  /// all others, so that they are replaced here.
  void replace(const ElementRows& k, const UnsetVector<T>& negative_inverse) {
#pragma omp parallel for schedule(static)
    for (std::int64_t p = 0; p < k.size(); ++p) {
      const T* const from = product_.data() + p * n_;
      const std::int64_t row = k.begin + p;
      for (std::int64_t i = 0; i < k.begin; ++i) a_(i, row) = -adjoint(from[i]);
      for (std::int64_t r = p; r < k.size(); ++r)
        a_(row, k.begin + r) = negative_inverse[static_cast<std::size_t>(p * k.size() + r)];
      for (std::int64_t j = k.end; j < n_; ++j) a_(row, j) = -from[j];
    }
  }

  View<T, 2> a_;
  std::int64_t n_;
  std::vector<ElementRows> slices_;
  DeviceTeam& team_;
  std::int64_t step_;       ///< rows of a panel
  UnsetVector<T> panel_;    ///< A_K, [step][n]
  UnsetVector<T> product_;  ///< −D A_K, [step][n]
};

}  // namespace

void invert_in_slices(View<double, 2> matrix, std::int64_t slices, DeviceTeam& team) {
  Elimination<double>(matrix, slices, team).run();
}
void invert_in_slices(View<Cplx, 2> matrix, std::int64_t slices, DeviceTeam& team) {
  Elimination<Cplx>(matrix, slices, team).run();
}

}  // namespace quasi::gw
