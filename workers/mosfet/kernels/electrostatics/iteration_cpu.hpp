#pragma once

#include <memory>
#include <vector>

#include "workers/mosfet/kernels/electrostatics/newton_method.hpp"
#include "workers/mosfet/kernels/electrostatics/poisson.hpp"
#include "workers/mosfet/kernels/mosfet_kernels.hpp"

namespace quasi::mosfet {

/// Report of one Schrödinger–Poisson iteration.
struct IterationReport {
  int iterations = 0;
  double last_step_v = 0;  ///< last max |δV|
  double residual = 0;     ///< ‖P‖∞/‖(e/ε0)N_D‖∞ at the last evaluated V
  bool converged = false;
};

/// Solves Schrödinger–Poisson with given ϱ on the CPU, by chord iteration with a frozen matrix
/// (docs/theory/mosfet.md 9.3).
class FieldIteration {
 public:
  /// @param newton  replaces warm levels and frozen matrix; null: not used
  explicit FieldIteration(const TransportProblem& problem,
                          std::shared_ptr<const NewtonMethod> newton = nullptr);

  /// Computes the Newton matrix of the present levels from all states of every column (LAPACK).
  /// Pairs of negative weight are left out, so that it is positive definite. @throws NotConverged
  /// if LAPACK finds no states
  void refresh(const PointBoundary& boundary, const PointState& state,
               const std::vector<double>& sheet_nm2);

  /// Finds V, ε, ψ for `sheet_nm2` [n_valleys][subbands][nx] from the guess in *potential_v and
  /// warm levels. It stops when max|δV| ≤ tol_v and the residual ≤ 1e-6. The levels then change
  /// with the last δV to first order.
  IterationReport solve(const PointBoundary& boundary, const std::vector<double>& sheet_nm2,
                        std::vector<double>* potential_v, std::vector<double>* energy_ev,
                        std::vector<double>* psi) const;

  double lead_fs() const { return problem_.lead_fs; }
  /// Returns true if a stage starts from the extrapolated V. With a NewtonMethod it starts from the
  /// last V.
  bool predicts() const { return newton_ == nullptr; }

 private:
  const TransportProblem& problem_;
  std::shared_ptr<const NewtonMethod> newton_;
  double residual_unit_;  ///< ‖(e/ε0) N_D Δx Δz‖∞
  std::unique_ptr<ColumnMatrix> matrix_;
};

/// Field of one Runge–Kutta step. V is predicted to third order in Δt at every stage and then
/// solved for.
class FieldStep {
 public:
  FieldStep(const FieldIteration& iteration, const PointBoundary& boundary, double dt_fs,
            PointState* state);

  /// Solves for V, ε, ψ of `state` with ϱ of stage 0, 1 or 2.
  IterationReport solve(int stage, const std::vector<double>& sheet_nm2);
  /// Keeps the values that the next step's predictor and its term τ_d ∂ε/∂t need.
  void keep_trend();

 private:
  const FieldIteration& iteration_;
  const PointBoundary& boundary_;
  PointState& state_;
  double ratio_, lead_per_step_;
  std::vector<double> v_n_, v_1_, v_2_, energy_n_;
};

}  // namespace quasi::mosfet
