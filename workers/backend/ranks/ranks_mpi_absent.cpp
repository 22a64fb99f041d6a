#include "workers/backend/ranks/ranks.hpp"

namespace quasi {

std::unique_ptr<Ranks> join_ranks() {
  const LaunchedAs as = launched_as();
  if (as.processes > 1)
    throw BackendAbsent("started as one of " + std::to_string(as.processes) +
                        " processes, but this program was built without MPI; build it where MPI is "
                        "installed (QUASI_MPI=ON), or start it once");
  return {};
}

}  // namespace quasi
