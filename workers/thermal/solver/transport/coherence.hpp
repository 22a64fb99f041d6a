#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "workers/thermal/model/force_constants.hpp"
#include "workers/thermal/solver/transport/conductivity.hpp"

namespace quasi::thermal {

/// The velocity operator at one mesh point, v_ss' = e_s† (∂D/∂q) e_s' / (ω_s + ω_s'), [3][nb][nb]
/// in km/s; zero for pairs with a mode that takes no part.
///
/// D here has the phases of atomic positions, not of lattice vectors alone as elsewhere:
/// off-diagonal elements depend on that choice, and with positions the conductivity is the same
/// whatever cell describes the crystal (Simoncelli, Marzari, Mauri, Phys. Rev. X 12, 041011).
std::vector<std::complex<double>> velocity_operator(const Transport& transport,
                                                    const DynamicalMatrixBuilder& builder,
                                                    std::int64_t point);

/// Heat carried between modes of one wave vector, at one temperature.
struct Coherence {
  std::vector<Mat3> by_row_w_per_mk;  ///< [n_rows] each pair shared equally between its modes
  Mat3 kappa_w_per_mk{};
};

/// The coherences' part of the Wigner conductivity, with the relaxation-time rates as linewidths.
/// Pairs inside a degenerate subspace belong to the populations. The modes at Γ count here: pairs
/// of optical branches, which need no direction.
/// @param rates_per_ps  [nT][n_rows]
std::vector<Coherence> coherence_conductivity(const Transport& transport,
                                              const SecondOrder& constants,
                                              const std::vector<double>& temperatures_k,
                                              const std::vector<std::vector<double>>& rates_per_ps);

}  // namespace quasi::thermal
