#pragma once

#include <vector>

#include "workers/mosfet/kernels/electrostatics/poisson.hpp"
#include "workers/mosfet/kernels/mosfet_kernels.hpp"

namespace quasi::mosfet {

/// Newton's matrix of one step of the published iteration, factorised: the response of the
/// transported subbands of every valley at V, found cold by LAPACK's MRRR; also leaves ε, ψ of the
/// families. @throws NotConverged
class PublishedNewtonStep {
 public:
  PublishedNewtonStep(const TransportProblem& problem, const PotentialBoundary& boundary,
                      const std::vector<double>& sheet_nm2, const std::vector<double>& potential_v,
                      std::vector<double>* energy_ev, std::vector<double>* psi);
  void solve(double* x) const;

 private:
  int order_, band_;
  std::vector<double> factor_;  ///< banded Cholesky factor [order][band+1]
};

}  // namespace quasi::mosfet
