#pragma once

#include "workers/gw/kernels/dense/dense_kernels.hpp"

namespace quasi::gw {

/// Dense linear algebra by BLAS and LAPACK.
class CpuDenseKernels final : public DenseKernels {
 public:
  void multiply_transposed(View<const Cplx, 2> a, View<const Cplx, 2> b,
                           View<Cplx, 2> product) override;
  void add_adjoint_product(const AdjointProduct<double>& product) override;
  void add_adjoint_product(const AdjointProduct<Cplx>& product) override;
  void invert_positive_definite(View<Cplx, 2> matrix) override;
  void invert_general(View<Cplx, 2> matrix) override;
  void eigen_hermitian(View<const Cplx, 2> matrix, View<double, 1> values,
                       View<Cplx, 2> vectors) override;
};

}  // namespace quasi::gw
