#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "workers/gw/physics/crystal.hpp"

namespace quasi::gw {

/// Eigenvalues with smaller differences belong to one multiplet when the gauge is fixed.
inline constexpr double kDegenerateStates_ry = 1e-8;

/// Makes eigenvectors a function of the Hamiltonian alone. Within a multiplet (|ΔE| < tolerance)
/// the vectors become eigenvectors of a fixed operator that is diagonal in G. Then the coefficient
/// of largest modulus of each is made real and positive. Restarts and other machines thus agree on
/// states.
///
/// @param vectors   [n_bands][n_spinor][n_pw], rotated in place
/// @param n_spinor  components of a vector. The fixed operator tells them apart, because time
///                  reversal with inversion exchanges them at one G.
void fix_gauge(const std::vector<IVec3>& g, const std::vector<double>& energy_ry,
               double tolerance_ry, std::vector<std::complex<double>>& vectors, int n_spinor = 1);

}  // namespace quasi::gw
