// Tells the thread sanitizer that an alarm of gRPC is set before it goes off. Debian's gRPC is not
// instrumented, so that what the caller passes to the function of an alarm looks like a race. The
// file is instrumented itself, other than tsan_grpc.cpp, because the templates that it uses are
// shared with the whole program.

#include <dlfcn.h>
#include <grpcpp/alarm.h>

#include <functional>
#include <utility>

extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}

namespace grpc {

void Alarm::SetInternal(gpr_timespec deadline, std::function<void(bool)> function) {
  using Set = void(Alarm*, gpr_timespec, std::function<void(bool)>);
  static auto* const real = reinterpret_cast<Set*>(
      dlsym(RTLD_NEXT, "_ZN4grpc5Alarm11SetInternalE12gpr_timespecSt8functionIFvbEE"));
  // The library copies a plain pointer. What the function holds is read after the acquisition.
  auto* const held = new std::function<void(bool)>(std::move(function));
  __tsan_release(held);
  real(this, deadline, [held](bool ok) {
    __tsan_acquire(held);
    (*held)(ok);
    delete held;
  });
}

}  // namespace grpc
