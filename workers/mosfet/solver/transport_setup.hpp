#pragma once

#include "workers/mosfet/input/deck.hpp"
#include "workers/mosfet/kernels/mosfet_kernels.hpp"
#include "workers/mosfet/solver/equilibrium.hpp"

namespace quasi::mosfet {

/// Grids, bands, fluxes and scattering of a deck, ready for the kernels.
TransportProblem make_transport_problem(const Deck& deck, const Structure& structure);

/// c_n = kT(1+2αkT)/(Δw Σ_ℓ(1+2αw_ℓ)e^{−w_ℓ/kT}): with it the sum over the w grid of a Maxwellian
/// equals its integral exactly.
double maxwell_correction(const TransportProblem& problem);

/// Potential and inflow of one bias; Φ* is the largest inflow value of the source.
PointBoundary make_point_boundary(const Deck& deck, const TransportProblem& problem,
                                  const BiasPoint& bias, const Equilibrium& source,
                                  const Equilibrium& drain);

/// The start: V, ε, ψ of the quasi-equilibrium and Φ = c_n K s e^{(E_F−ε−w)/kT}.
PointState make_start(const Deck& deck, const TransportProblem& problem, const BiasPoint& bias,
                      const PointBoundary& boundary, const Equilibrium& equilibrium);

}  // namespace quasi::mosfet
