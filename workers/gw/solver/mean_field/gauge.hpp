#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "workers/gw/physics/crystal.hpp"

namespace quasi::gw {

/// Eigenvalues closer than this belong to one multiplet when the gauge is fixed.
inline constexpr double kDegenerateStates_ry = 1e-8;

/// Makes eigenvectors a function of the Hamiltonian alone: within a multiplet (|ΔE| < tolerance)
/// the vectors become eigenvectors of a fixed operator diagonal in G, then the coefficient of
/// largest modulus of each is made real and positive. Restarts and other machines then agree on
/// states.
///
/// @param vectors  [n_bands][n_pw], rotated in place
void fix_gauge(const std::vector<IVec3>& g, const std::vector<double>& energy_ry,
               double tolerance_ry, std::vector<std::complex<double>>& vectors);

}  // namespace quasi::gw
