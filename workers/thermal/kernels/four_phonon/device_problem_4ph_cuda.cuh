#pragma once

#include <cstdint>

#include "workers/backend/device/device_buffer.cuh"
#include "workers/thermal/kernels/four_phonon/tables_4ph.hpp"

namespace quasi::thermal::cuda4ph {

/// Arrays of a four-phonon problem on the current device.
class DeviceProblem4ph {
 public:
  DeviceProblem4ph() = default;
  /// Uploads the problem. @throws OutOfMemory if the device has no room for it.
  explicit DeviceProblem4ph(const Problem4ph& problem);

  /// Returns views of the arrays, without Tables4ph::contracted.
  Tables4ph tables() const;

 private:
  using Numbers = cuda::DeviceBuffer<double>;
  using Complexes = cuda::DeviceBuffer<Complex<double>>;
  using Integers = cuda::DeviceBuffer<std::int32_t>;

  static constexpr int kPlanLists = 9;
  static constexpr int kOrderLists = 6;

  Tables4ph host_{};  ///< sizes, rules and flags; its pointers are those of the host
  Numbers omega_, spread_, occupation_, tensor_;
  Complexes eigenvector_, phase_;
  cuda::DeviceBuffer<std::int16_t> zone_;
  cuda::DeviceBuffer<std::uint16_t> partner_weight_;
  Integers set_, point_, star_, star_size_, precedence_;
  Integers plan_[kPlanLists];    ///< in the order of ContractionArrays4ph
  Integers order_[kOrderLists];  ///< in the order of TotalOrderArrays4ph
};

/// Copies complex numbers of the host to the device. @param n  number of complex values
cuda::DeviceBuffer<Complex<double>> upload_complex(const void* values, std::size_t n,
                                                   const char* what);

}  // namespace quasi::thermal::cuda4ph
