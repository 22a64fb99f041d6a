#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "tests/thermal/support/solved_deck.hpp"

namespace quasi::thermal::test {

/// Returns the problem of a solved deck with each row moved to a random q-point of its star. Rates
/// there are those of the row.
inline ThreePhononProblem at_random_members(const SolvedDeck& solved) {
  ThreePhononProblem elsewhere = solved.problem;
  std::mt19937 random(7);
  for (std::size_t i = 0; i < elsewhere.rows.size(); ++i) {
    std::vector<std::int32_t> members;
    for (std::int64_t q = 0; q < solved.run.modes.n_q; ++q)
      if (solved.deck.symmetry.star_of[q] == static_cast<std::int32_t>(i))
        members.push_back(static_cast<std::int32_t>(q));
    elsewhere.rows[i] = members[random() % members.size()];
  }
  return elsewhere;
}

}  // namespace quasi::thermal::test
