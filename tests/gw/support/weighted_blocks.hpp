#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/gw/support/pseudoband_crystals.hpp"
#include "tests/gw/support/small_silicon.hpp"
#include "workers/gw/solver/pseudoband_errors/sigma_response.hpp"
#include "workers/gw/solver/screening/grouped_screening.hpp"

namespace quasi::gw::test {

/// χ of eight atoms by blocks of vectors, and Σ of all their vectors.
struct WeightedBlocks {
  SmallSilicon silicon;
  SilentProgress silent;
  DeviceTeam team{*silicon.kernels};
  Checkpoint checkpoint{{}, 0, 1e9, silent};
  StepContext context{silicon.coulomb, team, checkpoint, silent};
  PseudobandPlan plan;
  MeanField of_chi = replaced(PseudobandUse::kScreening),
            of_sigma = replaced(PseudobandUse::kSelfEnergy);
  GroupedScreening screening{
      of_chi,
      {.epsilon_cutoff_ry = 3.0, .bands = plan.bands(), .frequencies_ry = {Cplx{}}},
      context,
      nullptr};
  SigmaOptions options = silicon.options(silicon.field.n_occupied);

  explicit WeightedBlocks(const EmpiricalCrystal& crystal = eight_atoms(),
                          const PseudobandOptions& wanted = {.vectors = 8,
                                                             .protected_ry = 0.3,
                                                             .blocks = 4})
      : silicon(crystal), plan(plan_pseudobands(silicon.field, wanted, true)) {
    options.bands = plan.bands();
    options.band_min = 14;
    std::vector<EmptyBands> groups{{"protected", {0, plan.kept}}};
    for (int block = 0; block < plan.blocks; ++block) {
      const auto [begin, end] = plan.bands_of_block(block);
      groups.push_back({std::to_string(block), {begin, end}, false});
    }
    screening.add(groups);
  }
  MeanField replaced(PseudobandUse use) const {
    MeanField field = silicon.field;
    field.waves = pseudobands(silicon.field.waves, plan, use);
    return field;
  }
  std::vector<DielectricMatrix> epsilon(double weight_of_first_block) {
    std::vector<double> weights(static_cast<std::size_t>(plan.blocks) + 1, 1.0);
    weights[1] = weight_of_first_block;
    return screening.dielectric_matrices(weights);
  }
  PlasmonPoleModel poles(const DielectricMatrix& epsilon, ScreeningAtQ* at) const {
    *at = screening_at(of_sigma, epsilon, options.screened_cutoff_ry, silicon.coulomb, {0});
    return plasmon_poles(of_sigma, *at, options, silicon.coulomb, wing_factors(at->epsilon));
  }
};

}  // namespace quasi::gw::test
