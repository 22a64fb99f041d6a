#include <memory>
#include <utility>

#include "workers/backend/device/device_buffer.cuh"
#include "workers/backend/device/launch_cuda.cuh"
#include "workers/backend/device/stream.cuh"
#include "workers/mosfet/kernels/wave/wave_kernels.hpp"
#include "workers/mosfet/kernels/wave/wave_noise_solver.hpp"
#include "workers/mosfet/kernels/wave/wave_solver.hpp"

namespace quasi::mosfet {
namespace {

using quasi::cuda::DeviceBuffer;
using quasi::cuda::Stream;
using quasi::cuda::StreamPriority;

/// A CUDA device as the machine of a WaveSolver. All work is ordered on one stream.
class CudaMachine {
 public:
  template <typename T>
  using Array = DeviceBuffer<T>;

  // The device is chosen before the stream, which belongs to the current device.
  explicit CudaMachine(const Device& device)
      : stream_((use_device(device), std::make_unique<Stream>(StreamPriority::kNormal))) {}

  template <typename T>
  Array<T> make(std::size_t count, const char* what) const {
    return Array<T>(count, what);
  }
  template <typename T>
  Array<T> upload(const T* values, std::size_t count, const char* what) const {
    Array<T> out(count, what);
    out.copy_from(values, count, what, stream_->get());
    stream_->synchronize(what);  // the values may end with the call
    return out;
  }
  template <typename T>
  std::vector<T> download(const T* from, std::size_t count, const char* what) const {
    std::vector<T> host(count);
    quasi::cuda::check(cudaMemcpyAsync(host.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost,
                                       stream_->get()),
                       what);
    stream_->synchronize(what);
    return host;
  }
  template <typename Body>
  void run(std::int64_t count, const Body& body, const char* what) const {
    quasi::cuda::for_each_index(count, body, what, stream_->get());
  }

 private:
  std::unique_ptr<Stream> stream_;
};

}  // namespace

std::unique_ptr<WaveKernels> make_wave_kernels_cuda(const WaveProblem& problem,
                                                    const Device& device) {
  return std::make_unique<WaveSolver<CudaMachine>>(problem, CudaMachine(device));
}

std::unique_ptr<WaveNoiseKernels> make_wave_noise_kernels_cuda(const WaveProblem& problem,
                                                               const WaveObservation& observation,
                                                               const Device& device) {
  return std::make_unique<WaveNoiseSolver<CudaMachine>>(problem, observation, CudaMachine(device));
}

}  // namespace quasi::mosfet
