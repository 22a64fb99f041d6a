#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "workers/gw/solver/self_energy/sigma.hpp"

namespace quasi::gw {

/// V_xc between the outer states, eV: one matrix [n][n] for each (k, spin) of the plan; none
/// without V_xc.
struct ExchangeCorrelation {
  std::vector<std::vector<Cplx>> matrix_ev;
  std::int64_t n = 0;

  bool empty() const { return matrix_ev.empty(); }
  std::vector<std::vector<double>> diagonal_ev() const;
};

/// Fortran files open with the count of their 96-byte title; vxc.dat opens with text.
bool is_fortran_file(const std::filesystem::path& path);

/// V_xc between the outer states, from VXC with the present states or from vxc.dat.
/// @param path          empty: none
/// @param off_diagonal  whether elements n ≠ m are needed; else they may be 0
/// @throws InvalidInput for a k-point, band or element that the file lacks
ExchangeCorrelation exchange_correlation(const std::filesystem::path& path, const MeanField& field,
                                         const SigmaOptions& options, GwKernels& kernels,
                                         bool off_diagonal);

}  // namespace quasi::gw
