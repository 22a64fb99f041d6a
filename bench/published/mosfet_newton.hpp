#pragma once

#include <memory>
#include <vector>

#include "workers/mosfet/kernels/electrostatics/newton_method.hpp"

namespace quasi::mosfet {

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
};

}  // namespace quasi::mosfet
