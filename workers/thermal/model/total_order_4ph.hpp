#pragma once

#include <cstdint>
#include <vector>

namespace quasi::thermal {

/// The order in which total momenta are summed, and which of them share a table of last pairs.
///
/// An operation R of the group takes the pairs (λ'', λ''') of one Q to those of R Q, with their
/// energies, Σ|p|² and |Σp| (the symmetric width's). One sorted table, that of the star's
/// representative, therefore serves the star. The members of a star are neighbours in the order.
/// The vectors are empty where symmetry is not used: then the position of Q is its number, and
/// every Q has a table of its own.
struct TotalOrder4ph {
  std::vector<std::int32_t> total;           ///< [n_q] Q at each position
  std::vector<std::int32_t> star;            ///< [n_q] number of its star, rising with the position
  std::vector<std::int32_t> representative;  ///< [n_stars] the Q whose table serves
  std::vector<std::int32_t>
      operation;  ///< [n_q] number of the R that takes the representative to the Q of the position
  std::vector<std::int32_t> rotated, rotated_back;  ///< [n_operations][n_q] R q and R⁻¹ q
};

}  // namespace quasi::thermal
