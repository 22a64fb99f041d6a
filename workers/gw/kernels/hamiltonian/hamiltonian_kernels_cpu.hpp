#pragma once

#include "workers/gw/kernels/hamiltonian/hamiltonian_kernels.hpp"

namespace quasi::gw {

/// The Hamiltonian as an operator on the processor (docs/theory/gw.md 9.1). Bits do not depend on
/// the number of threads.
class CpuHamiltonianKernels final : public HamiltonianKernels {
 public:
  std::unique_ptr<LoadedHamiltonian> load(const HamiltonianOperator& h) override;
};

}  // namespace quasi::gw
