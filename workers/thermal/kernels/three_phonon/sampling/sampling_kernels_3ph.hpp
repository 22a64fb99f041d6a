#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "workers/thermal/kernels/three_phonon/sampling/sample_3ph.hpp"
#include "workers/thermal/kernels/three_phonon/three_phonon_kernels.hpp"

namespace quasi::thermal {

/// Draws three-phonon processes on one device. `load` moves the problem to the device, and later
/// calls use it. One object serves one solve and is not thread-safe.
/// See docs/theory/thermal.md 10 for the equations.
class SamplingKernels3 {
 public:
  virtual ~SamplingKernels3() = default;

  virtual void load(const ThreePhononProblem& problem,
                    const std::vector<double>& temperatures_k) = 0;

  /// Sums the draws of the published estimator for rows first ≤ row < last (SampleUniform3).
  /// @param draws     number of draws for each row and channel
  /// @param elements  false leaves the matrix elements out
  /// @return [rows][2][UniformLayout]
  virtual std::vector<double> uniform(std::uint64_t seed, std::int64_t draws, bool elements,
                                      std::int64_t first, std::int64_t last) = 0;

  /// Sums processes drawn by their weight u for rows first ≤ row < last (SampleThinned3).
  /// @param draws       expected number for each row, channel and temperature; 0 sums the weights
  ///                    of all processes only
  /// @param weight_sum  [rows][2][n_temperatures] Σu of these rows; empty with draws = 0
  /// @return [rows][2][ThinnedLayout]
  virtual std::vector<double> thinned(std::uint64_t seed, double draws,
                                      const std::vector<double>& weight_sum, std::int64_t first,
                                      std::int64_t last) = 0;
};

/// @throws BackendAbsent if the back end of the device is not in this build.
std::unique_ptr<SamplingKernels3> make_sampling_kernels_3ph(const Device& device);
std::unique_ptr<SamplingKernels3> make_sampling_kernels_3ph_cuda(const Device& device);

}  // namespace quasi::thermal
