#pragma once

#include <array>
#include <complex>

#include "workers/mosfet/model/bias.hpp"
#include "workers/mosfet/solver/beam/small_signal/terminal_field.hpp"

namespace quasi::mosfet {

using TerminalMatrix = std::array<std::array<std::complex<double>, kTerminals>, kTerminals>;

/// Returns the shares of source, drain and gate in the reference potential that the cells of H
/// follow (docs/theory/mosfet.md 17.8): the contact with the higher Fermi level of electrons, and
/// half of both contacts without drain bias.
std::array<double, kTerminals> reference_shares(const BiasPoint& bias);

/// Changes Y at cells of H that stay into Y at cells that follow the reference potential. Rows then
/// add to zero. @return the sums of the rows before
std::array<std::complex<double>, kTerminals> follow_reference(const BiasPoint& bias,
                                                              TerminalMatrix* y);

}  // namespace quasi::mosfet
