#pragma once

#include "workers/gw/kernels/hamiltonian/hamiltonian_kernels.hpp"

namespace quasi::gw {

/// The Hamiltonian as an operator on the processor (docs/theory/gw.md 9.1). Bits do not depend on
/// the number of threads.
class CpuHamiltonianKernels final : public HamiltonianKernels {
 public:
  std::unique_ptr<LoadedHamiltonian> load(const HamiltonianOperator& h) override;
  std::unique_ptr<const LoadedLocalPotentials> load_potentials(
      const LocalPotentials& potentials) override;
  std::unique_ptr<CouplingBlock> make_couplings() override;
};

}  // namespace quasi::gw
