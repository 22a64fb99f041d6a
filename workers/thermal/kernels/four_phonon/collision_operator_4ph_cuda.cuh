#pragma once

#include <cstdint>
#include <vector>

#include "workers/backend/device/device_buffer.cuh"
#include "workers/thermal/kernels/four_phonon/scattering_kernels_4ph.hpp"

namespace quasi::thermal::cuda4ph {

/// Arrays in which the collision operator of some rows is summed, in whole units of 1/scale. Sums
/// of integers do not depend on the order in which processes arrive.
/// See docs/theory/thermal.md 8 for the equations.
struct CollisionTarget {
  unsigned long long* matrix = nullptr;  ///< [rows][n_modes], two's complement
  const double* scale = nullptr;         ///< [rows]
  CollisionForm4ph form{};
};

/// Rows of the four-phonon collision operator on the device in use: their sums, and after `finish`
/// the matrix. The calls are those of the collision part of ScatteringKernels4ph.
class CollisionOperator4ph {
 public:
  /// @param places  total momenta that a launch sums at most
  void begin(const CollisionRequest4ph& request, int n_branches, std::int64_t n_modes,
             std::int32_t places);
  const CollisionRequest4ph& request() const { return request_; }
  std::int64_t rows() const {
    return static_cast<std::int64_t>(request_.last_point - request_.first_point) * n_branches_;
  }

  /// @param occupation  [n_modes] at the temperature of the request, on the device
  CollisionTarget target(const double* occupation) const;
  double* partial() const {
    return partial_.data();
  }  ///< [places][rows][2 signs][2]: Σ Γ and Σ|Γ| of a launch
  /// Adds the partial sums of a launch on `stream` in order of place, on the same stream.
  void add_places(std::int32_t places, cudaStream_t stream);

  std::vector<double> state() const;
  bool restore(const double* state, std::size_t count);
  std::vector<double> finish();
  std::vector<double> apply(const std::vector<double>& f) const;

 private:
  void start();

  CollisionRequest4ph request_;
  int n_branches_ = 0;
  std::int64_t n_modes_ = 0;
  std::vector<double> scale_host_;
  cuda::DeviceBuffer<double> scale_, out_scattering_, partial_;
  cuda::DeviceBuffer<unsigned long long> matrix_;
};

}  // namespace quasi::thermal::cuda4ph
