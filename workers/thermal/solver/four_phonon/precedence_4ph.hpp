#pragma once

#include "workers/thermal/kernels/four_phonon/scattering_kernels_4ph.hpp"

namespace quasi::thermal {

/// Fills in Problem4ph::precedence and its slack from the stars, sets and frequencies of a problem
/// in which λ and λ' are interchangeable. Modes of one star and degenerate set have one precedence:
/// the rank of their frequency among all.
void order_precedence_4ph(Problem4ph& problem);

}  // namespace quasi::thermal
