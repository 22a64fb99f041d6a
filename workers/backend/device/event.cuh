#pragma once

#include <cuda_runtime.h>

#include "workers/backend/device/check_cuda.cuh"
#include "workers/backend/device/owned_handle.cuh"

namespace quasi::cuda {

/// Whether an event stores the time at which the device reached it.
enum class EventTiming { kOff, kOn };

/// Owns a mark in the work of a stream, on the device that is in use at construction. Other streams
/// and the host can wait for the mark. A mark that was never recorded counts as reached.
class Event {
 public:
  explicit Event(EventTiming timing = EventTiming::kOff) {
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(
              &event, timing == EventTiming::kOn ? cudaEventDefault : cudaEventDisableTiming),
          "creating an event");
    event_ = OwnedHandle<cudaEvent_t, cudaEventDestroy>(event);
  }

  /// Places the mark after the work that `stream` has so far.
  void record(cudaStream_t stream, const char* what = "recording an event") const {
    check(cudaEventRecord(event_.get(), stream), what);
  }
  /// Work that is given to `stream` from now on starts after the mark.
  void hold(cudaStream_t stream, const char* what = "ordering two streams") const {
    check(cudaStreamWaitEvent(stream, event_.get(), 0), what);
  }
  /// Waits on the host until the device has reached the mark.
  void synchronize(const char* what) const { check(cudaEventSynchronize(event_.get()), what); }
  /// Seconds from the mark `start` to this one. Both keep their time, and both are reached.
  double seconds_since(const Event& start) const {
    float ms = 0.0f;
    check(cudaEventElapsedTime(&ms, start.event_.get(), event_.get()), "timing");
    return 1e-3 * static_cast<double>(ms);
  }

 private:
  OwnedHandle<cudaEvent_t, cudaEventDestroy> event_;
};

}  // namespace quasi::cuda
