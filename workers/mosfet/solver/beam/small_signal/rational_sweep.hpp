#pragma once

#include <complex>
#include <functional>
#include <vector>

namespace quasi::mosfet {

/// Holds the values of several functions at every frequency of a list.
struct SweptValues {
  std::vector<std::vector<std::complex<double>>> values;  ///< [frequencies][functions]
  int solutions = 0;  ///< number of frequencies at which the functions were computed
};

/// Computes functions of frequency, such as Y(ω), that are rational in good approximation. They
/// are solved for at a few of the frequencies. A rational function in barycentric form gives the
/// values between them, and all functions share its poles [nakatsukasa2018]. A linear relation
/// between the functions, such as columns of Y that add to zero, holds at every frequency as it
/// does at the solved ones.
///
/// Frequencies are added where two successive interpolations differ most. The sweep ends when they
/// agree to `tolerance` everywhere, and two interpolations in a row have predicted a new solution
/// to this tolerance. Deviations are relative to the largest function at their frequency.
/// @param frequencies  at least one, increasing, not negative, in the unit of `solve`
/// @param solve  computes the functions f at a frequency ω, with f(−ω) = f(ω)*
/// @throws NotConverged if the interpolation fails, and all that `solve` throws
SweptValues rational_sweep(const std::vector<double>& frequencies,
                           const std::function<std::vector<std::complex<double>>(double)>& solve,
                           double tolerance);

}  // namespace quasi::mosfet
