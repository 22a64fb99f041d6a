// The supervisor's view of its devices and of its own time: health, memory, self-tests, the end of
// an allocation and long idleness.

#include <memory>

#include "workers/daemon/supervisor.hpp"

namespace quasi {

void Supervisor::test_devices() {
  if (settings_.self_test_interval.count() == 0 || draining_) return;
  for (const WorkerDevice& device :
       devices_.begin_tests(now(), settings_.self_test_interval, settings_.retest_interval)) {
    auto trouble = std::make_shared<std::string>();
    ports_.background.run(
        [trouble, device, &source = devices_.source()] { *trouble = source.self_test(device); },
        [this, trouble, device] {
          devices_.tested(device, *trouble);
          acquire();
        });
  }
}

void Supervisor::look_at_devices() {
  devices_.refresh();
  for (const auto& [fence, runner] : runners_)
    if (runner->child_alive())
      runner->note_gpu_bytes(devices_.held_by(runner->devices(), runner->process_group()));
  devices_.hold(settings_.scratch_shortage());  // also while a poll is under way
  end_strays();
  test_devices();
  acquire();
}

void Supervisor::watch_end() {
  if (!runners_.empty()) idle_since_ = now();
  if (draining_) return;
  if (settings_.drain_at && now() >= *settings_.drain_at) {
    ports_.log.info("time_over", {{"attempts", runners_.size()}});
    return drain();
  }
  if (settings_.idle_timeout.count() > 0 && now() >= idle_since_ + settings_.idle_timeout) {
    ports_.log.info("idle", {{"idle_ms", settings_.idle_timeout.count()}});
    drain();
  }
}

}  // namespace quasi
