#pragma once

#include "workers/mosfet/input/deck.hpp"
#include "workers/mosfet/kernels/mosfet_kernels.hpp"
#include "workers/mosfet/solver/equilibrium/equilibrium.hpp"

namespace quasi::mosfet {

/// Begin here: builds grids, bands, fluxes and scattering of a deck for the kernels
/// (docs/theory/mosfet.md 5). observables.hpp computes results, current_average.hpp decides on
/// steadiness, mobility.hpp gives the linear response.
TransportProblem make_transport_problem(const Deck& deck, const Structure& structure);

/// Returns c_n = kT(1+2αkT)/(Δw Σ_ℓ(1+2αw_ℓ)e^{−w_ℓ/kT}). With this factor the sum over the w grid
/// of a Maxwellian equals its integral exactly.
double maxwell_correction(const TransportProblem& problem);

/// Returns the shift of the Fermi level with which the sums over the w grid hold the contact
/// column's density. It is kT ln c_n for Maxwell's statistics. For Fermi statistics it is one
/// number for all levels, so that the distribution stays a Fermi function.
double contact_shift_ev(const DeviceModel& model, const TransportProblem& problem,
                        const Equilibrium& contact);

/// Returns f of the deck's statistics at E_F − E = gap.
double occupation(const DeviceModel& model, double gap_ev);

/// Returns potential and inflow of one bias. Φ* is the largest inflow value of the source.
PointBoundary make_point_boundary(const DeviceModel& model, const TransportProblem& problem,
                                  const BiasPoint& bias, const Equilibrium& source,
                                  const Equilibrium& drain);

/// Equilibria of the two contact columns.
struct Contacts {
  const Equilibrium& source;
  const Equilibrium& drain;
};

/// Returns the start: V, ε, ψ of the quasi-equilibrium and Φ = K s f(E_F − ε − w).
PointState make_start(const DeviceModel& model, const TransportProblem& problem,
                      const BiasPoint& bias, const PointBoundary& boundary,
                      const Contacts& contacts, const Equilibrium& equilibrium);

}  // namespace quasi::mosfet
