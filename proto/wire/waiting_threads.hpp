#pragma once

#include <cstdlib>

namespace quasi {

/// Value of GOMP_SPINCOUNT for engines: a waiting thread spins 1000 times, some microseconds, and
/// then sleeps. libgomp uses this count if a program has more threads than the machine has
/// processors. It does not see the threads of other processes, and its count for an idle machine,
/// 300,000, makes a job burn whole time slices at each barrier. libgomp reads the environment
/// before main, so the process that starts an engine sets it.
inline constexpr const char* kSpinVariable = "GOMP_SPINCOUNT";
inline constexpr const char* kSpinCount = "1000";

/// Variables by which a user may already have chosen how threads wait.
inline constexpr const char* kWaitingVariables[] = {kSpinVariable, "OMP_WAIT_POLICY"};

/// Sets GOMP_SPINCOUNT for this process's children, unless the user has set one of the variables.
/// @return true if it was set.
inline bool let_children_sleep_while_waiting() {
  for (const char* name : kWaitingVariables)
    if (std::getenv(name) != nullptr) return false;
  return setenv(kSpinVariable, kSpinCount, 0) == 0;
}

}  // namespace quasi
