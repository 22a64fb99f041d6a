#include "workers/mosfet/solver/beam/small_signal/reference_frame.hpp"

namespace quasi::mosfet {

std::array<double, kTerminals> reference_shares(const BiasPoint& bias) {
  const double source = bias.vds_v > 0.0 ? 1.0 : bias.vds_v < 0.0 ? 0.0 : 0.5;
  return {source, 1.0 - source, 0.0};
}

// In the frame of the reference potential equal voltages at all terminals change nothing, and 1 V
// at one terminal is 1 V less at all terminals by the share of this terminal.
std::array<std::complex<double>, kTerminals> follow_reference(const BiasPoint& bias,
                                                              TerminalMatrix* y) {
  const std::array<double, kTerminals> share = reference_shares(bias);
  std::array<std::complex<double>, kTerminals> sums{};
  for (std::size_t i = 0; i < sums.size(); ++i) {
    for (const std::complex<double>& value : (*y)[i]) sums[i] += value;
    for (std::size_t j = 0; j < sums.size(); ++j) (*y)[i][j] -= share[j] * sums[i];
  }
  return sums;
}

}  // namespace quasi::mosfet
