#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "workers/backend/device/device.hpp"

namespace quasi::test {

/// Base of suites that run each test on every device of the machine. With
/// QUASI_REQUIRE_DEVICE=cuda, a machine without a CUDA device fails the suite's guard test.
class OnEveryDevice : public testing::TestWithParam<Device> {};

inline std::string device_name(const testing::TestParamInfo<Device>& info) {
  return info.param.backend == Backend::kCpu ? "cpu" : "cuda" + std::to_string(info.param.index);
}

}  // namespace quasi::test

#define QUASI_ON_EVERY_DEVICE(suite)                                                 \
  INSTANTIATE_TEST_SUITE_P(Devices, suite, testing::ValuesIn(quasi::list_devices()), \
                           quasi::test::device_name)
