#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include "workers/gw/kernels/pole_sums/diagonal/imaginary_poles_cpu.hpp"

namespace quasi::gw::cuda {

/// Imaginary poles in device memory.
struct ImaginaryPolesOnDevice {
  const ImaginaryPole* poles;
  std::int64_t n_poles;
  PoleRules rules;
};
/// Pair products M in device memory, rows of length n_g.
struct ProductRows {
  const double2* rows;
  std::int64_t n_g;
};

/// LoadedImaginaryPoles::add_diagonal on a device. One block works on a pair (l, n) and two
/// energies and goes through the whole list of poles. The sums of its threads are added in a fixed
/// tree, and pairs on the host in order, so that results have the same bits every time.
/// See docs/theory/gw.md 6.2 for the equations.
void add_imaginary_poles_cuda(const ImaginaryPolesOnDevice& poles, const ProductRows& products,
                              const DiagonalTerms& terms, const ImaginarySums& sums,
                              cudaStream_t stream);

}  // namespace quasi::gw::cuda
