#pragma once

#include <array>
#include <vector>

#include "workers/mosfet/kernels/electrostatics/poisson.hpp"
#include "workers/mosfet/kernels/mosfet_kernels.hpp"

namespace quasi::mosfet {

/// Terminals in the order of the rows and columns of Y. Both gates are one terminal.
enum class Terminal { kSource, kDrain, kGate };
constexpr int kTerminals = 3;

/// Returns δV on the nodes of given potential for 1 V at one terminal, and 0 elsewhere [nx][nz].
std::vector<double> terminal_lift(const Structure& structure, const PotentialBoundary& boundary,
                                  Terminal terminal);

/// Returns the charge by Gauss' law between the columns next to source and drain, and on the gate,
/// e/nm. The faces along x are those of the conduction currents.
std::array<double, kTerminals> terminal_charges(const TransportProblem& problem,
                                                const std::vector<double>& potential_v);

/// Returns the derivatives of the charge of source or drain by V [nx][nz], e/(V nm).
std::vector<double> terminal_charge_slopes(const Structure& structure, Terminal terminal);

}  // namespace quasi::mosfet
