// Tells the thread sanitizer the ordering promises of gRPC, which it cannot see.
//
// Debian's gRPC is not instrumented. Data that one thread passes to gRPC and another thread
// receives from it therefore look like a race. This file wraps the few functions of gRPC where that
// happens and reports exactly the promises of gRPC:
//
//   * The start of an operation happens before its completion. Both use the C interface. The start
//     is grpc_call_start_batch(…, tag), and for callbacks the tag is a functor that gRPC runs after
//     the operation. The tag is "released" at the start and "acquired" before the functor runs.
//   * OnDone comes after every other reaction of its call, and OnCancel comes after the handler.
//     gRPC counts both with atomics, partly in uninstrumented code. Both reactions run at once here
//     instead of on another thread, as gRPC itself does for reactions that are marked as short.
//   * absl::Mutex, the lock of gRPC, excludes other threads.
//   * A server is destroyed after its callbacks have returned.
//
// The file is built without instrumentation and linked into every program of a sanitizer build of
// the service.

#include <dlfcn.h>
#include <grpc/grpc.h>
#include <grpcpp/support/server_callback.h>
#include <link.h>

#include <array>
#include <atomic>
#include <cstdint>

extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}

namespace {

using Run = void (*)(grpc_completion_queue_functor*, int);

// A table and a lock that establish no order for the sanitizer: they allocate no memory, and this
// file is not instrumented.
struct Entry {
  grpc_completion_queue_functor* functor;
  Run original;
};
std::array<Entry, 1U << 16> table{};
std::atomic_flag busy = ATOMIC_FLAG_INIT;
int calls_over = 0;  // stands for "every callback that has returned"

std::size_t slot_of(const void* functor) {
  return (reinterpret_cast<std::uintptr_t>(functor) >> 4) * 0x9E3779B97F4A7C15U >> 48;
}

void remember(grpc_completion_queue_functor* functor) {
  while (busy.test_and_set(std::memory_order_acquire)) {
  }
  std::size_t slot = slot_of(functor);
  while (table[slot].functor != nullptr) slot = (slot + 1) % table.size();
  table[slot] = {functor, functor->functor_run};
  busy.clear(std::memory_order_release);
}

/// Removes the entry and closes the gap, so that every other entry is still found from its slot on.
Run recall(grpc_completion_queue_functor* functor) {
  while (busy.test_and_set(std::memory_order_acquire)) {
  }
  std::size_t gap = slot_of(functor);
  while (table[gap].functor != functor) gap = (gap + 1) % table.size();
  const Run original = table[gap].original;
  for (std::size_t at = (gap + 1) % table.size(); table[at].functor != nullptr;
       at = (at + 1) % table.size()) {
    const std::size_t home = slot_of(table[at].functor);
    if ((at - home) % table.size() < (at - gap) % table.size()) continue;
    table[gap] = table[at];
    gap = at;
  }
  table[gap] = {};
  busy.clear(std::memory_order_release);
  return original;
}

/// Tags of the callback interface begin with the address of a function. Tags of the synchronous
/// interface are C++ objects and begin with the address of a virtual table.
bool is_code(void* address) {
  const auto within = [](dl_phdr_info* module, std::size_t, void* wanted) {
    for (int i = 0; i < module->dlpi_phnum; ++i) {
      const ElfW(Phdr)& segment = module->dlpi_phdr[i];
      const auto begin = module->dlpi_addr + segment.p_vaddr;
      const auto at = reinterpret_cast<ElfW(Addr)>(wanted);
      if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0 && at >= begin &&
          at < begin + segment.p_memsz)
        return 1;
    }
    return 0;
  };
  return dl_iterate_phdr(within, address) != 0;
}

void run_after_acquire(grpc_completion_queue_functor* functor, int ok) {
  functor->functor_run = recall(functor);
  __tsan_acquire(functor);
  functor->functor_run(functor, ok);
  __tsan_release(&calls_over);
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* ops, size_t nops,
                                                 void* tag, void* reserved) {
  static auto* const real = next<decltype(grpc_call_start_batch)>("grpc_call_start_batch");
  auto* functor = static_cast<grpc_completion_queue_functor*>(tag);
  if (functor != nullptr && functor->functor_run != run_after_acquire &&
      is_code(reinterpret_cast<void*>(functor->functor_run))) {
    remember(functor);
    functor->functor_run = run_after_acquire;
    __tsan_release(functor);
  }
  return real(call, ops, nops, tag, reserved);
}

extern "C" void grpc_server_destroy(grpc_server* server) {
  static auto* const real = next<decltype(grpc_server_destroy)>("grpc_server_destroy");
  real(server);
  __tsan_acquire(&calls_over);
}

// The members of absl::Mutex by their names for the linker, because its class cannot be wrapped
// like gRPC's.
extern "C" {
void absl_mutex_lock(void* mutex) __asm__("_ZN4absl7debian35Mutex4LockEv");
void absl_mutex_unlock(void* mutex) __asm__("_ZN4absl7debian35Mutex6UnlockEv");
bool absl_mutex_try_lock(void* mutex) __asm__("_ZN4absl7debian35Mutex7TryLockEv");

void absl_mutex_lock(void* mutex) {
  static auto* const real = next<void(void*)>("_ZN4absl7debian35Mutex4LockEv");
  real(mutex);
  __tsan_acquire(mutex);
}
void absl_mutex_unlock(void* mutex) {
  static auto* const real = next<void(void*)>("_ZN4absl7debian35Mutex6UnlockEv");
  __tsan_release(mutex);
  real(mutex);
}
bool absl_mutex_try_lock(void* mutex) {
  static auto* const real = next<bool(void*)>("_ZN4absl7debian35Mutex7TryLockEv");
  const bool locked = real(mutex);
  if (locked) __tsan_acquire(mutex);
  return locked;
}
}

namespace grpc::internal {

void ServerCallbackCall::ScheduleOnDone(bool) {
  __tsan_acquire(&callbacks_outstanding_);
  CallOnDone();
}

void ServerCallbackCall::CallOnCancel(ServerReactor* reactor) {
  __tsan_acquire(&on_cancel_conditions_remaining_);
  __tsan_acquire(&callbacks_outstanding_);
  reactor->OnCancel();
}

}  // namespace grpc::internal
