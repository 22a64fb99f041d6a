#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "workers/backend/progress.hpp"
#include "workers/thermal/kernels/three_phonon/sampling/sampling_kernels_3ph.hpp"
#include "workers/thermal/solver/three_phonon/running_sums.hpp"

namespace quasi::thermal {

/// Estimates three-phonon rates from samples. Rows are shared out among the devices in tiles of
/// fixed size, and one device computes a tile, so that any number of devices gives the same bits.
class Sampler3 {
 public:
  /// @param kernels  one for each device, loaded with the problem and the temperatures; must
  /// outlive this
  Sampler3(const ThreePhononProblem& problem, std::vector<double> temperatures_k,
           std::vector<SamplingKernels3*> kernels, std::uint64_t seed, const CheckpointRule& rule,
           Progress& progress);

  /// Draws tuples for each mode and channel uniformly from the Nq nb² of the box, as FourPhonon
  /// does: Γ = box·mean.
  /// @param draws              for the rates; 0: phase spaces only
  /// @param phase_space_draws  for phase spaces and counts
  ThreePhononRates uniform(std::int64_t draws, std::int64_t phase_space_draws);

  /// Draws processes by their Bose factor times δ, about `draws` for each mode and channel
  /// (ratio_estimate). Phase spaces and counts are exact. While `good_enough` returns false, the
  /// number of draws is doubled. A larger sample contains the smaller one.
  ThreePhononRates by_weight(std::int64_t draws,
                             const std::function<bool(const ThreePhononRates&)>& good_enough);

 private:
  using Compute =
      std::function<std::vector<double>(SamplingKernels3&, std::int64_t first, std::int64_t last)>;
  std::vector<double> sums(const char* name, double draws, bool seeded, int size, const char* phase,
                           const Compute& compute);
  ThreePhononRates empty() const;

  const ThreePhononProblem& problem_;
  std::vector<double> temperatures_k_;
  std::vector<SamplingKernels3*> kernels_;
  std::uint64_t seed_;
  std::uint64_t digest_;
  Checkpoint checkpoint_;
  Progress& progress_;
};

}  // namespace quasi::thermal
