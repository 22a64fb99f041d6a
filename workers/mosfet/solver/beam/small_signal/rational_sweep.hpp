#pragma once

#include <complex>
#include <functional>
#include <vector>

namespace quasi::mosfet {

/// Values of several functions at every frequency of a list.
struct SweptValues {
  std::vector<std::vector<std::complex<double>>> values;  ///< [frequencies][functions]
  int solutions = 0;  ///< number of frequencies at which the functions were computed
};

/// Computes functions of frequency that are rational in good approximation, such as Y(ω), at a few
/// of the frequencies. Between them a rational function in barycentric form holds, whose poles all
/// functions share [nakatsukasa2018]. A linear relation between the functions, such as columns of Y
/// that add to zero, holds at every frequency as it does at the computed ones.
///
/// Frequencies are added where two successive interpolations differ most. The sweep ends when they
/// agree to `tolerance` everywhere, and twice in a row have predicted a new frequency to it.
/// Deviations count relative to the largest function at their frequency.
/// @param frequencies  increasing, not negative
/// @param solve  computes the functions at a frequency; f(−ω) = f(ω)*
SweptValues rational_sweep(const std::vector<double>& frequencies,
                           const std::function<std::vector<std::complex<double>>(double)>& solve,
                           double tolerance);

}  // namespace quasi::mosfet
