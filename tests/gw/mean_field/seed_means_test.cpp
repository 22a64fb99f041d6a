// Means over seeds of whole jobs with pseudobands by polynomials of H. Nightly.

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "tests/gw/support/cpu_hamiltonians.hpp"
#include "tests/gw/support/pseudoband_crystals.hpp"
#include "tests/gw/support/small_silicon.hpp"
#include "workers/gw/solver/pseudoband_errors/statistical_errors.hpp"

namespace quasi::gw {
namespace {

constexpr int kSeeds = 400, kVectors = 8, kBlocks = 4;

/// Σ of the valence top and the conduction bottom, and their difference, eV.
using Energies = std::array<double, 3>;

/// Jobs of eight atoms at Γ whose mean field is calculated once.
class Jobs {
 public:
  explicit Jobs(const std::string& name)
      : crystal_(test::eight_atoms(name, 5.0, test::plane_waves(name, 5.0))),
        options_(crystal_.options(
            whole_band_counts(crystal_.field.waves, crystal_.field.n_occupied + 1, 40).front())),
        lowest_(test::loaded(name, 5.0, 60, "operator")),
        plan_(plan_filtered_pseudobands(lowest_, {.vectors = kVectors}, true)) {
    options_.band_min = 14;
  }

  Energies all_bands() {
    return energies(test::edges(crystal_.field, crystal_.sigma(options_), options_));
  }
  /// The exact average over all random factors of both uses.
  Energies without_noise() {
    PseudobandPlan plan = plan_;
    return solved(test::of_every_plane_wave(lowest_, plan, PseudobandUse::kScreening),
                  test::of_every_plane_wave(lowest_, plan, PseudobandUse::kSelfEnergy));
  }
  /// The jackknife's estimate of one seed.
  Energies estimate(int seed) {
    const Energies pooled = of_vectors(seed, -1);
    std::array<std::vector<double>, 3> without;
    for (int block = 0; block < kBlocks; ++block) {
      const Energies found = of_vectors(seed, block);
      for (std::size_t i = 0; i < 3; ++i) without[i].push_back(found[i]);
    }
    Energies made;
    for (std::size_t i = 0; i < 3; ++i) made[i] = jackknife(pooled[i], without[i]).value;
    return made;
  }

 private:
  static Energies energies(const std::pair<double, double>& edges) {
    return {edges.first, edges.second, edges.second - edges.first};
  }
  Energies of_vectors(int seed, int left_out) {
    PseudobandPlan plan = plan_;
    plan.seed = seed;
    std::erase_if(plan.chosen, [&](int r) { return r * kBlocks / kVectors == left_out; });
    return solved(
        filtered_pseudobands(lowest_, plan, PseudobandUse::kScreening, test::cpu_hamiltonians()),
        filtered_pseudobands(lowest_, plan, PseudobandUse::kSelfEnergy, test::cpu_hamiltonians()));
  }
  Energies solved(Wavefunctions of_screening, Wavefunctions of_sigma) {
    MeanField field = lowest_;
    field.waves = std::move(of_screening);
    const std::vector<DielectricMatrix> epsilon = crystal_.screening(field);
    field.waves = std::move(of_sigma);
    SigmaOptions options = options_;
    options.bands = field.waves.n_bands;
    return energies(test::edges(field, crystal_.sigma(field, epsilon, options), options));
  }

  test::SmallSilicon crystal_;
  SigmaOptions options_;
  MeanField lowest_;
  PseudobandPlan plan_;
};

// The estimates have no bias against the windows without noise. The error of the windows is in
// both. Against all bands it remains.
void expect_no_bias(const std::string& name) {
  Jobs jobs(name);
  const Energies windows = jobs.without_noise(), all = jobs.all_bands();
  std::array<std::vector<double>, 3> found;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const Energies one = jobs.estimate(seed);
    for (std::size_t i = 0; i < 3; ++i) found[i].push_back(one[i]);
  }
  const char* const what[] = {"valence top", "conduction bottom", "gap"};
  for (std::size_t i = 0; i < 3; ++i) {
    const test::Statistics mean(found[i]);
    std::printf("%s %s: seeds - windows %.2f +- %.2f meV, windows - all bands %.2f meV\n",
                name.c_str(), what[i], 1e3 * (mean.mean - windows[i]), 1e3 * mean.error,
                1e3 * (windows[i] - all[i]));
    EXPECT_NEAR(mean.mean, windows[i], 3.0 * mean.error) << what[i];
    EXPECT_LT(mean.error, 0.01) << what[i];
    EXPECT_NEAR(windows[i], all[i], 5e-3) << what[i];
  }
}
TEST(SeedMeans, SiliconHasNoBias) { expect_no_bias("silicon"); }
TEST(SeedMeans, GalliumArsenideHasNoBias) { expect_no_bias("gaas"); }

}  // namespace
}  // namespace quasi::gw
