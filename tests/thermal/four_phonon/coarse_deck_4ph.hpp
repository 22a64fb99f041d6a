#pragma once

#include <filesystem>
#include <vector>

#include "tests/support/reference_data.hpp"
#include "workers/thermal/input/deck/deck.hpp"
#include "workers/thermal/solver/four_phonon/four_phonon_run.hpp"

namespace quasi::thermal::test {

/// Reads the shipped Stillinger–Weber crystal with fourth-order constants on a coarse mesh.
/// @param more  settings that follow
inline Deck coarse_deck(std::vector<Setting> more = {}) {
  std::vector<Setting> settings{
      {"ngrid", "4 4 4"}, {"four_phonon", ".true."}, {"scalebroad", "1.0"}};
  settings.insert(settings.end(), more.begin(), more.end());
  return read_deck(quasi::test::source_dir() / "examples/thermal/silicon-sw", settings);
}

/// Computes the four-phonon rates of a list of points, averaged over degenerate sets.
/// @param checkpoints  directory; empty: none
inline Rates4ph rates_at(const Deck& deck, const Modes& modes,
                         const std::vector<std::int32_t>& points, Progress& progress,
                         const std::filesystem::path& checkpoints = {},
                         const Device& device = Device{}) {
  const Problem4ph problem =
      make_problem_4ph(deck.crystal, modes, deck.symmetry, deck.control.four_phonon_options(),
                       *deck.fourth_order, points);
  const auto kernels = make_scattering_kernels_4ph(device, 0);
  Rates4ph rates = scattering_rates_4ph(problem, deck.control.constants(), {kernels.get()},
                                        progress, {checkpoints});
  average_degenerate_4ph(modes, points, rates);
  return rates;
}

}  // namespace quasi::thermal::test
