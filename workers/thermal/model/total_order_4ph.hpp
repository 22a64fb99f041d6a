#pragma once

#include <cstdint>
#include <vector>

namespace quasi::thermal {

/// Order in which total momenta are summed, and the total momenta that share a table of last pairs
/// (docs/theory/thermal.md 11.5).
///
/// An operation R of the group maps the pairs (λ'', λ''') of one Q to those of R Q, with equal
/// energies, Σ|p|² and |Σp| (which give the symmetric width). The sorted table of a star's
/// representative therefore serves the whole star. The members of a star are neighbours in the
/// order. The vectors are empty if symmetry is not used. The position of Q is then its number, and
/// every Q has its own table.
struct TotalOrder4ph {
  std::vector<std::int32_t> total;           ///< [n_q] Q at each position
  std::vector<std::int32_t> star;            ///< [n_q] number of its star, rising with the position
  std::vector<std::int32_t> representative;  ///< [n_stars] the Q whose table serves the star
  /// [n_q] Number of the R that maps the representative to the Q of the position.
  std::vector<std::int32_t> operation;
  std::vector<std::int32_t> rotated, rotated_back;  ///< [n_operations][n_q] R q and R⁻¹ q
};

}  // namespace quasi::thermal
