#pragma once

#include <string>
#include <vector>

#include "workers/backend/device/device.hpp"
#include "workers/backend/ranks/ranks.hpp"

namespace quasi {

/// Returns the devices that "auto", "cpu", "cuda:1" or "cuda:0,cuda:1" names. Several devices of
/// one back end can share one job. @throws InvalidInput for devices of two back ends, BackendAbsent
/// for a device that does not exist here.
std::vector<Device> devices_of(const std::string& names);

/// Returns the devices of this rank. Collective. If all ranks of a host see the same CUDA devices,
/// the devices are divided in the order of the list, and "auto" stands for all of them. If the
/// launcher gave every rank its own devices, the rank uses those. Any number of ranks may share the
/// CPU. @throws InvalidInput if a host has more ranks than devices.
std::vector<Device> devices_of_rank(const std::string& names, Ranks& ranks);

/// Returns the listed devices that belong to the rank `own` of a host. @param seen  identity of
/// every device that each rank of the host has listed
std::vector<Device> share_of_rank(const std::vector<Device>& listed,
                                  const std::vector<std::vector<std::string>>& seen, int own);

}  // namespace quasi
