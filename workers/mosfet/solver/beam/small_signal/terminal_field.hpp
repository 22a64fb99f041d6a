#pragma once

#include <array>
#include <vector>

#include "workers/mosfet/kernels/electrostatics/poisson.hpp"
#include "workers/mosfet/kernels/mosfet_kernels.hpp"

namespace quasi::mosfet {

/// Lists the terminals in the order of the rows and columns of Y. Both gates are one terminal.
enum class Terminal { kSource, kDrain, kGate };
/// A device has this number of terminals.
constexpr int kTerminals = 3;

/// Returns the boundary values of δV, the change of the potential, for a change of 1 V at one
/// terminal, V [nx][nz]. The value is 1 V on the nodes whose potential this terminal fixes, and 0
/// on all other nodes.
std::vector<double> terminal_lift(const Structure& structure, const PotentialBoundary& boundary,
                                  Terminal terminal);

/// Returns the charges of source, drain and gate by Gauss' law, e/nm. Those of source and drain
/// follow from the field between each contact column and its neighbour, where the conduction
/// currents are taken.
/// @param potential_v  V [nx][nz]
std::array<double, kTerminals> terminal_charges(const TransportProblem& problem,
                                                const std::vector<double>& potential_v);

/// Returns the derivatives of the charge of source or drain by V [nx][nz], e/(V nm). The gate is
/// not a valid argument.
std::vector<double> terminal_charge_slopes(const Structure& structure, Terminal terminal);

}  // namespace quasi::mosfet
