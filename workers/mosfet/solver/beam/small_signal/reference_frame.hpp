#pragma once

#include <array>
#include <complex>

#include "workers/mosfet/model/bias.hpp"
#include "workers/mosfet/solver/beam/small_signal/terminal_field.hpp"

namespace quasi::mosfet {

/// A terminal matrix holds one complex number for each pair of terminals, in the order of Terminal.
using TerminalMatrix = std::array<std::array<std::complex<double>, kTerminals>, kTerminals>;

/// Returns the shares r_j of source, drain and gate in the reference potential Σ_j r_j V_j that
/// the cells of H follow (docs/theory/mosfet.md 17.8). The contact with the higher Fermi level of
/// electrons has the share 1. Without drain bias both contacts have ½.
std::array<double, kTerminals> reference_shares(const BiasPoint& bias);

/// Changes Y at fixed cells of H into Y at cells that follow the reference potential, in place. The
/// rows then add to zero.
/// @return the sums of the rows before the change
std::array<std::complex<double>, kTerminals> follow_reference(const BiasPoint& bias,
                                                              TerminalMatrix* y);

}  // namespace quasi::mosfet
