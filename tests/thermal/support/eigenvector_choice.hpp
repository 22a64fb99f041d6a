#pragma once

#include <cstdint>

#include "workers/thermal/input/deck/deck.hpp"
#include "workers/thermal/solver/harmonic/harmonic.hpp"

namespace quasi::thermal::test {

/// Replaces the eigenvectors of every degenerate set by a random unitary mixture of them: one of
/// the choices that an eigensolver may make. Eigenvectors at −q stay the conjugates of those at q.
void rotate_degenerate_sets(const Deck& deck, std::uint64_t seed, Modes& modes);

/// Makes the eigenvectors canonical again (CanonicalVectors), as solve_harmonic does.
void make_canonical(const Deck& deck, Modes& modes);

}  // namespace quasi::thermal::test
