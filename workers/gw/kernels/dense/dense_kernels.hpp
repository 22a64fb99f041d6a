#pragma once

#include "workers/backend/view.hpp"
#include "workers/gw/kernels/pair_products/pair_product_kernels.hpp"

namespace quasi::gw {

/// Begin here: dense linear algebra on one device, with matrices in host memory. Nothing stays on
/// the device. See docs/theory/gw.md 9 for the equations.
class DenseKernels {
 public:
  virtual ~DenseKernels() = default;
  /// Computes product[m][n] = Σ_k a[m][k] b[n][k]. The product of real matrices is real.
  virtual void multiply_transposed(View<const Cplx, 2> a, View<const Cplx, 2> b,
                                   View<Cplx, 2> product) = 0;
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
