#include <iostream>

#include "workers/engine/exec.hpp"
#include "workers/engine/run_task.hpp"

namespace quasi {

int exec_attempt(const ExecOptions&) {
  std::cerr << "error: this quasi-engine was built without the service (QUASI_SERVICE=OFF) and "
               "cannot be driven by a worker; use 'quasi-engine run'\n";
  return static_cast<int>(ExitStatus::kUsage);
}

int exec_rank(const std::string&) { return exec_attempt({}); }

std::vector<std::string> exec_kinds() { return {}; }

}  // namespace quasi
