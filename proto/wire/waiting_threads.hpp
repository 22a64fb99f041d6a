#pragma once

#include <cstdlib>

namespace quasi {

/// Threads of an engine that wait for others spin 1000 times, some microseconds, and then sleep:
/// the count that libgomp itself takes where a program has more threads than there are processors.
/// It cannot see those of other jobs and people, and its count for a machine of one's own, 300,000,
/// lets a job beside others burn whole time slices at each of its barriers. libgomp reads the
/// environment before main: who starts an engine sets it.
inline constexpr const char* kSpinVariable = "GOMP_SPINCOUNT";
inline constexpr const char* kSpinCount = "1000";

/// The variables by which somebody has said how threads shall wait.
inline constexpr const char* kWaitingVariables[] = {kSpinVariable, "OMP_WAIT_POLICY"};

/// Sets it for this process's children, unless somebody has said otherwise. @return whether it did
inline bool let_children_sleep_while_waiting() {
  for (const char* name : kWaitingVariables)
    if (std::getenv(name) != nullptr) return false;
  return setenv(kSpinVariable, kSpinCount, 0) == 0;
}

}  // namespace quasi
