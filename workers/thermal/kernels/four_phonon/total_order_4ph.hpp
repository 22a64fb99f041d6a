#pragma once

#include <cstdint>
#include <vector>

namespace quasi::thermal {

/// The order in which total momenta are summed, and which of them share a table of last pairs.
///
/// An operation R of the group takes the pairs (λ'', λ''') of one Q to those of R Q, with their
/// energies, Σ|p|² and |Σp| (the symmetric width's): one sorted table, that of the star's leader,
/// serves the star. Members of a star stand beside each other. Empty where symmetry is not to be
/// used: then Q stands at the place of its number and has a table of its own.
struct TotalOrder4ph {
  std::vector<std::int32_t> total;   ///< [n_q] Q at each place
  std::vector<std::int32_t> star;    ///< [n_q] number of its star, rising with the place
  std::vector<std::int32_t> leader;  ///< [n_stars] the Q whose table serves
  std::vector<std::int32_t> turn;    ///< [n_q] which R takes the leader to the place's Q
  std::vector<std::int32_t> turned, turned_back;  ///< [n_turns][n_q] R q and R⁻¹ q
};

}  // namespace quasi::thermal
