#pragma once

#include <memory>
#include <vector>

#include "workers/mosfet/kernels/electrostatics/poisson.hpp"
#include "workers/mosfet/kernels/mosfet_kernels.hpp"

namespace quasi::mosfet {

/// A factorised Newton matrix of Poisson's equation.
class NewtonMatrix {
 public:
  virtual ~NewtonMatrix() = default;
  /// Replaces the residual [nx][nz] in `x` by the Newton step, in V.
  virtual void solve(double* x) const = 0;
};

/// A method that finds levels and Newton matrix anew in every step of the field iteration, in place
/// of the warm levels and the frozen matrix of FieldIteration. It allows a comparison of methods on
/// the same kernels.
class NewtonMethod {
 public:
  virtual ~NewtonMethod() = default;
  /// Levels and wave functions at `potential_v` [nx][nz], in the shapes of Subbands, and the Newton
  /// matrix there.
  /// @param sheet_nm2  ϱ [n_valleys][subbands][nx]
  /// @throws NotConverged
  virtual std::unique_ptr<NewtonMatrix> linearise(const TransportProblem& problem,
                                                  const PotentialBoundary& boundary,
                                                  const std::vector<double>& sheet_nm2,
                                                  const std::vector<double>& potential_v,
                                                  std::vector<double>* energy_ev,
                                                  std::vector<double>* psi) const = 0;
};

}  // namespace quasi::mosfet
