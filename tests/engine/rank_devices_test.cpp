#include "workers/engine/rank_devices.hpp"

#include <gtest/gtest.h>

#include "workers/backend/error.hpp"

namespace quasi {
namespace {

std::vector<Device> cuda(int n) {
  std::vector<Device> devices;
  for (int i = 0; i < n; ++i)
    devices.push_back({.backend = Backend::kCuda, .index = i, .model = "test"});
  return devices;
}

std::vector<int> indices(const std::vector<Device>& devices) {
  std::vector<int> list;
  for (const Device& device : devices) list.push_back(device.index);
  return list;
}

using Seen = std::vector<std::vector<std::string>>;

TEST(RankDevices, OneDeviceEach) {
  const Seen seen{{"a", "b"}, {"a", "b"}};
  EXPECT_EQ(indices(share_of_rank(cuda(2), seen, 0)), std::vector<int>{0});
  EXPECT_EQ(indices(share_of_rank(cuda(2), seen, 1)), std::vector<int>{1});
}

TEST(RankDevices, MoreDevicesThanRanksAreAllUsed) {
  const Seen seen{{"a", "b", "c"}, {"a", "b", "c"}};
  EXPECT_EQ(indices(share_of_rank(cuda(3), seen, 0)), std::vector<int>{0});
  EXPECT_EQ(indices(share_of_rank(cuda(3), seen, 1)), (std::vector<int>{1, 2}));
}

// With srun --gpus-per-task=1 every rank calls its own device cuda:0.
TEST(RankDevices, DevicesThatTheLauncherGaveOutAreKept) {
  const Seen seen{{"a"}, {"b"}, {"c"}};
  for (int own = 0; own < 3; ++own)
    EXPECT_EQ(indices(share_of_rank(cuda(1), seen, own)), std::vector<int>{0});
}

TEST(RankDevices, MoreRanksThanDevicesAreRefused) {
  const Seen seen{{"a", "b"}, {"a", "b"}, {"a", "b"}};
  try {
    share_of_rank(cuda(2), seen, 0);
    FAIL();
  } catch (const InvalidInput& failure) {
    EXPECT_NE(std::string(failure.what()).find("3 ranks on this host have 2 device(s)"),
              std::string::npos)
        << failure.what();
    EXPECT_NE(std::string(failure.what()).find("at most one rank a device"), std::string::npos)
        << failure.what();
  }
}

TEST(RankDevices, OverlappingDevicesAreRefused) {
  EXPECT_THROW(share_of_rank(cuda(2), {{"a", "b"}, {"b", "c"}}, 0), InvalidInput);
}

TEST(RankDevices, ListsAreReadAndMayNotMixBackEnds) {
  EXPECT_EQ(devices_of("cpu,cpu").size(), 2u);
  EXPECT_THROW(devices_of(""), InvalidInput);
  EXPECT_EQ(devices_of_rank("cpu", one_rank()).size(), 1u);
}

}  // namespace
}  // namespace quasi
