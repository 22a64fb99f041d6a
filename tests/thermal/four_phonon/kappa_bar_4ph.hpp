#pragma once

#include "tests/thermal/four_phonon/solved_deck_4ph.hpp"

namespace quasi::thermal::test {

/// Statistics of how well the error bars of κ describe the errors of κ, over samples of many seeds.
struct KappaBar {
  double rms_error_over_bar = 0.0;  ///< 1 for honest bars
  int covered = 0;                  ///< samples whose κ is within two bars of the exact one
  double mean_bar = 0.0;            ///< relative to κ
};

/// Samples the four-phonon rates of a deck whose exact rates are known, with seeds 1 … n_seeds.
/// @param draws  for each mode and channel
KappaBar kappa_bar_4ph(SolvedDeck4ph& exact, const Device& device, Sampling sampling,
                       std::int64_t draws, int n_seeds);

/// Silicon of the Stillinger–Weber potential at 1000 K on a 3×3×3 mesh, where degenerate sets
/// abound: every process summed.
std::unique_ptr<SolvedDeck4ph> exact_silicon_4ph(
    const Device& device, const std::function<void(SolvedDeck&)>& adjust = {});

}  // namespace quasi::thermal::test
