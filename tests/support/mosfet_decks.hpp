#pragma once

#include <string>

// Small mosfet decks for tests on several processes and with interruptions.

namespace quasi::test {

/// One pair of subbands on a coarse mesh, without a time between checkpoints. A test appends its
/// own [bias] and [run].
inline const std::string kMosfetCoarse = R"(kind = "mosfet"
parameters = "paper"
checkpoint_interval_s = 0.0
[mesh]
nx = 33
nz = 17
subbands = 1
nw = 12
nphi = 8
wmax_ev = 0.9
)";

}  // namespace quasi::test
