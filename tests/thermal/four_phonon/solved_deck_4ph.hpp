#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/thermal/support/solved_deck.hpp"
#include "workers/thermal/solver/four_phonon/four_phonon_run.hpp"

namespace quasi::thermal::test {

/// A deck taken through a whole run with three and four phonons.
struct SolvedDeck4ph : SolvedDeck {
  SilentProgress silent;
  std::unique_ptr<FourPhononRun> four_phonon;

  const TemperatureResult& at(std::size_t t = 0) const { return run.by_temperature[t]; }
};

/// Reads, solves and scatters with four_phonon switched on; `settings` come after it. `adjust` may
/// replace the modes before scattering starts.
std::unique_ptr<SolvedDeck4ph> solve_deck_4ph(const std::filesystem::path& directory,
                                              const std::vector<std::string>& settings,
                                              const std::vector<Device>& devices = {Device{}},
                                              const std::function<void(SolvedDeck&)>& adjust = {});

/// Solves a deck that was read before with four_phonon switched on, as solve_deck_4ph does.
std::unique_ptr<SolvedDeck4ph> solve_model_4ph(Deck model,
                                               const std::vector<Device>& devices = {Device{}},
                                               const std::function<void(SolvedDeck&)>& adjust = {});

}  // namespace quasi::thermal::test
