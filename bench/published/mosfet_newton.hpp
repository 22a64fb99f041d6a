#pragma once

#include <memory>
#include <vector>

#include "workers/mosfet/kernels/electrostatics/newton_method.hpp"

namespace quasi::mosfet {

/// Seconds of the parts of the published field iteration, since the method was made.
struct NewtonSeconds {
  double levels = 0;    ///< Schrödinger's equation in all columns
  double response = 0;  ///< kernel of the Newton matrix and its assembly
  double linear = 0;    ///< Cholesky factor of the linear system
};

/// The published Newton method: LAPACK's dstemr finds the transported levels of every valley cold,
/// and the response of these levels alone enters a banded Cholesky factor.
class PublishedNewton : public NewtonMethod {
 public:
  std::unique_ptr<NewtonMatrix> linearise(const TransportProblem& problem,
                                          const PotentialBoundary& boundary,
                                          const std::vector<double>& sheet_nm2,
                                          const std::vector<double>& potential_v,
                                          std::vector<double>* energy_ev,
                                          std::vector<double>* psi) const override;
  /// Returns the seconds of all calls of linearise(). Not thread-safe.
  const NewtonSeconds& seconds() const { return seconds_; }

 private:
  mutable NewtonSeconds seconds_;
};

}  // namespace quasi::mosfet
