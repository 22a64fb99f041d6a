#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "workers/thermal/kernels/three_phonon/sampling/sample_3ph.hpp"
#include "workers/thermal/kernels/three_phonon/three_phonon_kernels.hpp"

namespace quasi::thermal {

/// Draws of three-phonon processes on one device. `load` moves the problem to where the device can
/// read it; later calls use it. Not thread-safe: one solve, one instance.
class SamplingKernels3 {
 public:
  virtual ~SamplingKernels3() = default;

  virtual void load(const ThreePhononProblem& problem,
                    const std::vector<double>& temperatures_k) = 0;

  /// Rows [first, last), all draws of the published estimator: [rows][2][UniformLayout].
  /// @param elements  false leaves the matrix elements out
  virtual std::vector<double> uniform(std::uint64_t seed, std::int64_t draws, bool elements,
                                      std::int64_t first, std::int64_t last) = 0;

  /// Rows [first, last), processes drawn by their weight u (SampleThinned3):
  /// [rows][2][ThinnedLayout].
  /// @param draws       about so many a row, channel and temperature; 0: the weights of all
  /// processes only
  /// @param weight_sum  [rows][2][n_temperatures] of these rows; empty with draws = 0
  virtual std::vector<double> thinned(std::uint64_t seed, double draws,
                                      const std::vector<double>& weight_sum, std::int64_t first,
                                      std::int64_t last) = 0;
};

/// @throws BackendAbsent when the device's back end is not in this build.
std::unique_ptr<SamplingKernels3> make_sampling_kernels_3ph(const Device& device);
std::unique_ptr<SamplingKernels3> make_sampling_kernels_3ph_cuda(const Device& device);

}  // namespace quasi::thermal
