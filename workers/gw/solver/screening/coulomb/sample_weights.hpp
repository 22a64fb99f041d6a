#pragma once

#include <complex>
#include <vector>

#include "workers/gw/physics/crystal.hpp"
#include "workers/gw/solver/screening/coulomb/sheet_screening.hpp"

namespace quasi::gw {

/// Weights of q → 0 in a sum over the q-grid of a slab, for an integrand f that is known at the
/// lengths p_j of some samples too (docs/theory/gw.md 5.2):
///
///   ∫ f d²p / A = Σ_{q≠0} f(q) + w_0 + Σ_j w_j f(p_j),   A = area of one point of the grid
///
/// The ratio of f to W_00(p) = 8πv_c/(1 + γ(p) p² v_c) is a polynomial of degree 6 in p by least
/// squares, and 1 at p = 0.
struct SampleWeights {
  double at_zero = 0.0;           ///< w_0, Ry Bohr³
  std::vector<double> of_sample;  ///< w_j, without unit
};

/// The plane of a slab and its grid of q.
struct PlaneOfGrid {
  Vec3 first{}, second{};         ///< steps of the grid, Cartesian, 1/Bohr
  double half_length_bohr = 0.0;  ///< half of the cell across the plane
};

/// Calculates the weights.
/// @param length  lengths of the samples, those of sample_lengths(), 1/Bohr
/// @param gamma   γ(p) at p = 0 and at each length, Bohr
SampleWeights sample_weights(const PlaneOfGrid& plane, const std::vector<double>& length,
                             const std::vector<std::complex<double>>& gamma);

}  // namespace quasi::gw
