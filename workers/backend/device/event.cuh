#pragma once

#include <cuda_runtime.h>

#include "workers/backend/device/check_cuda.cuh"
#include "workers/backend/device/owned_handle.cuh"

namespace quasi::cuda {

/// Selects whether an event stores the time at which the device reached it.
enum class EventTiming { kOff, kOn };

/// Owns a CUDA event on the device that is current at construction. Other streams and the host can
/// wait for it. An event that was never recorded counts as reached.
class Event {
 public:
  explicit Event(EventTiming timing = EventTiming::kOff) {
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(
              &event, timing == EventTiming::kOn ? cudaEventDefault : cudaEventDisableTiming),
          "creating an event");
    event_ = OwnedHandle<cudaEvent_t, cudaEventDestroy>(event);
  }

  /// Records the event after all work that `stream` has received.
  void record(cudaStream_t stream, const char* what = "recording an event") const {
    check(cudaEventRecord(event_.get(), stream), what);
  }
  /// Lets all later work of `stream` start after the event.
  void hold(cudaStream_t stream, const char* what = "ordering two streams") const {
    check(cudaStreamWaitEvent(stream, event_.get(), 0), what);
  }
  /// Waits on the host until the device has reached the event.
  void synchronize(const char* what) const { check(cudaEventSynchronize(event_.get()), what); }
  /// Returns the seconds from `start` to this event. Both must store times and be reached.
  double seconds_since(const Event& start) const {
    float ms = 0.0f;
    check(cudaEventElapsedTime(&ms, start.event_.get(), event_.get()), "timing");
    return 1e-3 * static_cast<double>(ms);
  }

 private:
  OwnedHandle<cudaEvent_t, cudaEventDestroy> event_;
};

}  // namespace quasi::cuda
