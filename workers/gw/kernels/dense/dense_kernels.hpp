#pragma once

#include <cstdint>

#include "workers/backend/view.hpp"
#include "workers/gw/kernels/pair_products/pair_product_kernels.hpp"

namespace quasi::gw {

/// Describes the product C_ij += α Σ_p A*_pi B_pj of row-major matrices in host memory. A stride
/// is the number of elements from the start of a row to the start of the next one.
template <typename T>
struct AdjointProduct {
  std::int64_t rows = 0, columns = 0, depth = 0;  ///< numbers of i, j and p
  double alpha = 1.0;
  const T* a = nullptr;
  std::int64_t a_stride = 0;
  const T* b = nullptr;
  std::int64_t b_stride = 0;
  T* c = nullptr;
  std::int64_t c_stride = 0;
};

/// Begin here: dense linear algebra on one device, with matrices in host memory. Nothing stays on
/// the device. See docs/theory/gw.md 9 for the equations.
class DenseKernels {
 public:
  virtual ~DenseKernels() = default;
  /// Computes product[m][n] = Σ_k a[m][k] b[n][k]. The product of real matrices is real.
  virtual void multiply_transposed(View<const Cplx, 2> a, View<const Cplx, 2> b,
                                   View<Cplx, 2> product) = 0;
  /// Adds one product to C. A GPU takes blocks of rows of C one after another. The size of the
  /// blocks is fixed, so that the bits do not depend on the free memory.
  virtual void add_adjoint_product(const AdjointProduct<double>& product) = 0;
  virtual void add_adjoint_product(const AdjointProduct<Cplx>& product) = 0;
  /// Inverts a Hermitian positive definite matrix in place (Cholesky) and fills both triangles.
  /// @throws NotConverged naming the leading minor if it is not positive definite
  virtual void invert_positive_definite(View<Cplx, 2> matrix) = 0;
  /// Inverts a general matrix in place (LU). @throws NotConverged if it is singular
  virtual void invert_general(View<Cplx, 2> matrix) = 0;
  /// Computes the lowest eigenpairs of a Hermitian matrix in ascending order: Σ_G' H_GG' c_i(G') =
  /// λ_i c_i(G). The eigenvectors of a real matrix are real. @param values   [n_lowest] @param
  /// vectors  c_i(G), [n_lowest][n]
  virtual void eigen_hermitian(View<const Cplx, 2> matrix, View<double, 1> values,
                               View<Cplx, 2> vectors) = 0;
};

}  // namespace quasi::gw
