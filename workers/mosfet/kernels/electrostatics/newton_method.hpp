#pragma once

#include <memory>
#include <vector>

#include "workers/mosfet/kernels/electrostatics/poisson.hpp"
#include "workers/mosfet/kernels/mosfet_kernels.hpp"

namespace quasi::mosfet {

/// A factorised Newton matrix of Poisson's equation (docs/theory/mosfet.md 9.2).
class NewtonMatrix {
 public:
  virtual ~NewtonMatrix() = default;
  /// Replaces the residual [nx][nz] in `x` by the Newton step, in V.
  virtual void solve(double* x) const = 0;
};

/// A method that recomputes levels and Newton matrix in every step of the field iteration. It
/// replaces the warm levels and the frozen matrix of FieldIteration, and serves to compare methods
/// on equal kernels.
class NewtonMethod {
 public:
  virtual ~NewtonMethod() = default;
  /// Returns levels and wave functions at `potential_v` [nx][nz], in the shapes of Subbands, and
  /// the Newton matrix there. @param sheet_nm2  ϱ [n_valleys][subbands][nx] @throws NotConverged
  virtual std::unique_ptr<NewtonMatrix> linearise(const TransportProblem& problem,
                                                  const PotentialBoundary& boundary,
                                                  const std::vector<double>& sheet_nm2,
                                                  const std::vector<double>& potential_v,
                                                  std::vector<double>* energy_ev,
                                                  std::vector<double>* psi) const = 0;
};

}  // namespace quasi::mosfet
