#include "workers/daemon/ports/event_loop.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace quasi {
namespace {

int wait_milliseconds(std::optional<MonotonicTime> deadline) {
  if (!deadline) return -1;
  const auto left = *deadline - std::chrono::steady_clock::now();
  if (left <= MonotonicTime::duration::zero()) return 0;
  // The time is rounded up, because waking before the deadline would poll until it comes.
  const auto milliseconds = std::chrono::ceil<Milliseconds>(left).count();
  return static_cast<int>(std::min<long long>(milliseconds, 60'000));
}

}  // namespace

EventLoop::EventLoop()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (epoll_ < 0 || wake_ < 0)
    throw std::system_error(errno, std::generic_category(), "event loop");
  watch(wake_, [this] { run_posted(); });
}

EventLoop::~EventLoop() {
  if (wake_ >= 0) close(wake_);
  if (epoll_ >= 0) close(epoll_);
}

void EventLoop::watch(int descriptor, std::function<void()> on_readable) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = descriptor;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) != 0)
    throw std::system_error(errno, std::generic_category(), "epoll_ctl");
  watched_[descriptor] = std::move(on_readable);
}

void EventLoop::unwatch(int descriptor) {
  if (watched_.erase(descriptor) > 0) epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr);
}

void EventLoop::post(std::function<void()> function) {
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(function));
  }
  const std::uint64_t one = 1;
  // A full counter wakes the loop as well, so a failed write loses nothing.
  [[maybe_unused]] const auto written = write(wake_, &one, sizeof one);
}

void EventLoop::run_posted() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto read_bytes = read(wake_, &count, sizeof count);
  std::vector<std::function<void()>> now;
  {
    const std::lock_guard lock(mutex_);
    now.swap(posted_);
  }
  for (const auto& function : now) function();
}

void EventLoop::run_once(std::optional<MonotonicTime> deadline) {
  std::array<epoll_event, 32> events{};
  const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()),
                               wait_milliseconds(deadline));
  for (int i = 0; i < count; ++i) {
    const auto found = watched_.find(events[static_cast<std::size_t>(i)].data.fd);
    if (found == watched_.end()) continue;  // removed by an earlier handler of this pass
    const auto handler = found->second;     // copied, because the handler may unwatch itself
    handler();
  }
}

}  // namespace quasi
