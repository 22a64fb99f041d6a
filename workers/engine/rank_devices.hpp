#pragma once

#include <string>
#include <vector>

#include "workers/backend/device/device.hpp"
#include "workers/backend/ranks/ranks.hpp"

namespace quasi {

/// "auto", "cpu", "cuda:1" or "cuda:0,cuda:1": one job on several devices of one back end.
/// @throws InvalidInput for devices of two back ends, BackendAbsent for one that is not here
std::vector<Device> devices_of(const std::string& names);

/// The devices of this rank (together). CUDA devices that the ranks of a host all see are shared
/// out in the order of the list, "auto" standing for all of them; where the launcher gave every
/// rank devices of its own, those are used. The CPU may be shared by any number of ranks.
/// @throws InvalidInput where the ranks of a host outnumber its devices
std::vector<Device> devices_of_rank(const std::string& names, Ranks& ranks);

/// Which of the listed devices belong to the rank `own` of a host.
/// @param seen  identity of every device that each rank of the host has listed
std::vector<Device> share_of_rank(const std::vector<Device>& listed,
                                  const std::vector<std::vector<std::string>>& seen, int own);

}  // namespace quasi
