#pragma once

#include <cstdint>

#include "workers/backend/device/device_buffer.cuh"
#include "workers/thermal/kernels/four_phonon/shared_sums_4ph.hpp"

/// Sizes and parts of the buffers of the exact sums. See docs/theory/thermal.md 7 for the
/// equations.
namespace quasi::thermal::cuda4ph {

/// Adds the partial sums of every total momentum of a batch to the total, in order.
struct AddTotals {
  const double* partial;
  std::int64_t n_values;
  int n_totals;
  double* total;

  QUASI_HD void operator()(std::int64_t index) const {
    double value = total[index];
    for (int i = 0; i < n_totals; ++i) value += partial[i * n_values + index];
    total[index] = value;
  }
};

/// Numbers that determine the sizes of the buffers of PendingSums. Buffers stay for the next
/// problem if all are equal.
struct BufferSizes {
  std::int64_t modes = 0;
  std::int32_t points = 0;
  int branches = 0;
  std::int64_t values = 0;
  std::int32_t stars = 0, totals = 0;
  bool exchange = false, symmetric = false;
  int pending = 0;
  std::int64_t listed = 0;  ///< processes of the lists of a launch

  bool operator==(const BufferSizes&) const = default;
};

/// SharedScales4ph on the device.
class SharedScaleBuffers {
 public:
  SharedScaleBuffers() = default;
  explicit SharedScaleBuffers(const SharedScales4ph& scales)
      : scale_(scales.scale, "scales of sums"),
        units_(scales.units),
        processes_(scales.processes) {}

  /// Returns the integer sums in `words` with these scales.
  SharedSums4ph with(unsigned long long* words) const { return {words, scale_.data(), units_}; }
  /// Returns SharedScales4ph::processes.
  double processes() const { return processes_; }

 private:
  cuda::DeviceBuffer<SharedScale4ph> scale_;
  SharedUnits4ph units_;
  double processes_ = 0.0;
};

}  // namespace quasi::thermal::cuda4ph
