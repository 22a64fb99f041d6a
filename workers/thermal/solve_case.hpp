#pragma once

#include <filesystem>
#include <optional>

#include "workers/thermal/input/deck.hpp"
#include "workers/thermal/solver/conductivity_run.hpp"
#include "workers/thermal/solver/derived.hpp"
#include "workers/thermal/solver/four_phonon_run.hpp"

namespace quasi::thermal {

/// One deck taken from modes to κ.
struct SolvedCase {
  ConductivityRun run;
  std::optional<FourPhononRun> four_phonon;  ///< with four_phonon
  std::optional<Derived> derived;            ///< not with onlyharmonic
};

SolvedCase solve_case(const Deck& deck, const Device& device, const std::filesystem::path& checkpoint_directory,
                      Progress& progress);

}  // namespace quasi::thermal
