#pragma once

#include <cuda_runtime.h>

#include "workers/backend/device/check_cuda.cuh"
#include "workers/backend/device/owned_handle.cuh"

/// Order of work on a CUDA device. Three rules hold in all kinds:
///
/// 1. Every stream is non-blocking (cudaStreamNonBlocking). It does not wait for the default stream
///    and the default stream does not wait for it.
/// 2. A kernel or copy that touches data of a stream names that stream. Where two streams share
///    data, an Event orders them, or the host waits for the first one.
/// 3. The default stream serves code that uses no other stream, and uploads. A DeviceBuffer
///    operation that names no stream is complete when it returns. A kernel on the default stream
///    whose result another stream reads is followed by finish_default_stream.
namespace quasi::cuda {

/// Selects whether the blocks of a stream are scheduled before those of other streams of the
/// device.
enum class StreamPriority { kNormal, kUrgent };

/// Owns a non-blocking stream of the device that is in use at construction. The default-constructed
/// object owns no stream, and its handle is that of the default stream.
class Stream {
 public:
  Stream() = default;
  /// @throws DeviceLost if the stream cannot be created.
  explicit Stream(StreamPriority priority) {
    int lowest = 0, highest = 0;
    check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "reading stream priorities");
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                       priority == StreamPriority::kUrgent ? highest : lowest),
          "creating a stream");
    stream_ = OwnedHandle<cudaStream_t, cudaStreamDestroy>(stream);
  }

  cudaStream_t get() const { return stream_.get(); }
  /// Waits on the host until the work of the stream is done. Faults of its kernels surface here,
  /// and `what` names the work in the message.
  void synchronize(const char* what) const { check(cudaStreamSynchronize(stream_.get()), what); }

 private:
  OwnedHandle<cudaStream_t, cudaStreamDestroy> stream_;
};

}  // namespace quasi::cuda
