#pragma once

namespace quasi::gw {

/// Method that finds eigenstates of the mean-field Hamiltonian (docs/theory/gw.md 9.2).
enum class Eigensolver {
  kDense,     ///< diagonalisation of the whole matrix
  kOperator,  ///< Chebyshev-filtered subspace iteration; H acts by transforms
};

struct EigensolverOptions {
  Eigensolver method = Eigensolver::kDense;
  double residual_ry = 1e-8;  ///< largest ‖Hψ − Eψ‖ of a state that kOperator returns
  int max_iterations = 100;   ///< of kOperator
};

}  // namespace quasi::gw
