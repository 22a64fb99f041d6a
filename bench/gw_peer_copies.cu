// What goes from one device to all others at once, as W's poles do (2.94 GB at 216 atoms): by
// copies that devices make themselves, and, before they are allowed to, by way of the host. One
// JSON line each. Argument: gigabytes, 2.94.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "workers/backend/device/device_buffer.cuh"
#include "workers/backend/device/stream.cuh"
#include "workers/backend/stopwatch.hpp"
#include "workers/gw/kernels/peer_copy.cuh"

namespace {

using namespace quasi;
using gw::cuda::check;

/// Seconds from the start of the first copy to the end of the last, best of three after one to warm
/// up; a stream of each receiver.
template <typename Copy>
double seconds_of(const std::vector<Device>& devices, const std::vector<cuda::Stream>& streams,
                  Copy copy) {
  double best = 1e30;
  for (int turn = 0; turn < 4; ++turn) {
    const Stopwatch clock;
    for (std::size_t to = 1; to < devices.size(); ++to) {
      use_device(devices[to]);
      copy(to);
    }
    for (std::size_t to = 1; to < devices.size(); ++to)
      streams[to].synchronize("copying between devices");
    const double seconds = clock.seconds();
    if (turn > 0) best = std::min(best, seconds);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const auto bytes = static_cast<std::int64_t>((argc > 1 ? std::atof(argv[1]) : 2.94) * 1e9);
  std::vector<Device> devices;
  for (const Device& device : list_devices())
    if (device.backend == Backend::kCuda) devices.push_back(device);
  if (devices.size() < 2) {
    std::printf("{\"error\": \"fewer than two devices\"}\n");
    return 1;
  }
  std::vector<cuda::DeviceBuffer<char>> buffers;
  std::vector<cuda::Stream> streams;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    use_device(devices[i]);
    buffers.emplace_back(static_cast<std::size_t>(bytes), "copies between devices");
    streams.emplace_back(cuda::StreamPriority::kNormal);
  }
  const auto report = [&](const char* what, double seconds) {
    std::printf(
        "{\"case\": \"%s\", \"receivers\": %zu, \"seconds\": %.4f, \"gb_per_s_each\": %.0f}\n",
        what, devices.size() - 1, seconds, static_cast<double>(bytes) / seconds / 1e9);
  };
  report("by way of the host", seconds_of(devices, streams, [&](std::size_t to) {
           check(cudaMemcpyPeerAsync(buffers[to].data(), devices[to].index, buffers[0].data(),
                                     devices[0].index, static_cast<std::size_t>(bytes),
                                     streams[to].get()),
                 "copying between devices");
         }));
  report("from device to device", seconds_of(devices, streams, [&](std::size_t to) {
           gw::cuda::peer_copy({buffers[to].data(), devices[to]}, {buffers[0].data(), devices[0]},
                               bytes, streams[to].get(), "copying between devices");
         }));
  return 0;
}
