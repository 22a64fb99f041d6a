#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "workers/gw/model/mean_field_options.hpp"
#include "workers/gw/solver/self_energy/sigma.hpp"

namespace quasi::gw {

/// V_xc between the outer states.
struct ExchangeCorrelation {
  std::vector<std::vector<Cplx>> matrix_ev;  ///< [k and spin][n][n], eV; empty: no V_xc
  std::int64_t n = 0;                        ///< number of outer states

  bool empty() const { return matrix_ev.empty(); }
  std::vector<std::vector<double>> diagonal_ev() const;
};

/// Returns true for a file VXC of BerkeleyGW and for a folder PREFIX.save of Quantum ESPRESSO,
/// which give V_xc(G). A file VXC begins with the length of its title, 96 bytes. The result is
/// false for a file vxc.dat, which begins with text and holds matrix elements.
bool holds_potential(const std::filesystem::path& path);

/// Reads V_xc between the outer states: VXC gives the potential, vxc.dat the matrix elements.
/// @param path          VXC or vxc.dat; empty: no V_xc
/// @param off_diagonal  true: elements n ≠ m are needed; false: they may be 0
/// @throws InvalidInput for a k-point, band or element that the file lacks
ExchangeCorrelation exchange_correlation(const std::filesystem::path& path, const MeanField& field,
                                         const SigmaOptions& options, GwKernels& kernels,
                                         bool off_diagonal);

/// Returns V_xc between the outer states of a mean field. It comes from the file or the folder
/// PREFIX.save that `source` names. For a built-in crystal it comes from the density
/// (local_density.hpp).
/// @param field  mean field with the outer states
/// @throws InvalidInput as the function above does
ExchangeCorrelation exchange_correlation(const MeanFieldOptions& source, const MeanField& field,
                                         const SigmaOptions& options, GwKernels& kernels,
                                         bool off_diagonal);

}  // namespace quasi::gw
