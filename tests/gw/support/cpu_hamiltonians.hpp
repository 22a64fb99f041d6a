#pragma once

#include "workers/gw/kernels/hamiltonian/hamiltonian_kernels_cpu.hpp"

namespace quasi::gw::test {

/// Kernels of H as an operator on the processor.
inline HamiltonianKernels& cpu_hamiltonians() {
  static CpuHamiltonianKernels kernels;
  return kernels;
}

}  // namespace quasi::gw::test
