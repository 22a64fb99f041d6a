#include "proto/wire/access/core_dumps.hpp"

#include <sys/resource.h>

namespace quasi::wire {

void forbid_core_dumps() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_CORE, &limit) != 0) return;
  // A limit of 0 bytes does not hold for a dump that the kernel pipes to a program such as
  // systemd-coredump; a limit of 1 byte holds for both (core(5)).
  limit.rlim_cur = limit.rlim_max < 1 ? limit.rlim_max : 1;
  ::setrlimit(RLIMIT_CORE, &limit);
}

}  // namespace quasi::wire
