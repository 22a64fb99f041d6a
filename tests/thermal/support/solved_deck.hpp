#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "workers/thermal/input/deck/deck.hpp"
#include "workers/thermal/solver/three_phonon/scattering.hpp"
#include "workers/thermal/solver/transport/conductivity.hpp"
#include "workers/thermal/solver/transport/conductivity_run.hpp"

namespace quasi::thermal::test {

/// The results and intermediate parts of a whole run of a deck.
struct SolvedDeck {
  Deck deck;
  ConductivityRun run;
  ThreePhononProblem problem;
  std::unique_ptr<ThreePhononKernels> kernels;
  SolvedDeck() = default;
  SolvedDeck(const SolvedDeck&) = delete;
  SolvedDeck& operator=(const SolvedDeck&) = delete;

  std::int64_t n_rows() const { return problem.n_rows(); }
  Transport transport() const {
    return {deck.crystal, deck.symmetry, run.modes, deck.control.transport_options()};
  }
};

std::vector<Setting> settings_of(const std::vector<std::string>& texts);

/// Reads a deck, solves it and computes the scattering. `adjust` may replace modes before
/// scattering.
std::unique_ptr<SolvedDeck> solve_deck(const std::filesystem::path& directory,
                                       const std::vector<std::string>& settings,
                                       const Device& device = Device{},
                                       const std::function<void(SolvedDeck&)>& adjust = {});

/// Solves a deck that was read before, as solve_deck does.
std::unique_ptr<SolvedDeck> solve_model(Deck deck, const Device& device = Device{},
                                        const std::function<void(SolvedDeck&)>& adjust = {});

/// ∫ dω of the xx element of a spectrum, which must equal κ.
double integral_over_omega(const Cumulative& spectrum);

}  // namespace quasi::thermal::test
