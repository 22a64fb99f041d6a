#include "workers/engine/rank_devices.hpp"

#include <omp.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "workers/backend/device/device_identity.hpp"
#include "workers/backend/error.hpp"

namespace quasi {
namespace {

std::vector<double> packed(const std::vector<Device>& devices) {
  std::vector<double> values;
  for (const Device& device : devices) {
    for (const char c : device_identity(device)) values.push_back(c);
    values.push_back(0.0);
  }
  return values;
}

std::vector<std::string> unpacked(const std::vector<double>& values, std::size_t from) {
  std::vector<std::string> list{""};
  for (std::size_t i = from; i < values.size(); ++i) {
    if (values[i] == 0.0)
      list.emplace_back();
    else
      list.back() += static_cast<char>(values[i]);
  }
  list.pop_back();
  return list;
}

/// Divides the processors of a host among its ranks. Without it, ranks that the launcher bound to
/// no processors would each start one thread per processor.
void share_processors(int ranks_on_host) {
  if (ranks_on_host < 2 || std::getenv("OMP_NUM_THREADS") != nullptr) return;
  cpu_set_t bound;
  if (sched_getaffinity(0, sizeof bound, &bound) != 0 ||
      CPU_COUNT(&bound) < sysconf(_SC_NPROCESSORS_ONLN))
    return;
  omp_set_num_threads(std::max(1, omp_get_max_threads() / ranks_on_host));
}

}  // namespace

std::vector<Device> devices_of(const std::string& names) {
  std::vector<Device> devices;
  std::istringstream list(names);
  for (std::string name; std::getline(list, name, ',');) devices.push_back(find_device(name));
  if (devices.empty()) throw InvalidInput("--device is empty; give auto, cpu or cuda:N");
  for (const Device& device : devices)
    if (device.backend != devices.front().backend)
      throw InvalidInput("--device " + names +
                         " mixes the CPU and CUDA; a job runs on devices of one kind");
  return devices;
}

std::vector<Device> share_of_rank(const std::vector<Device>& listed,
                                  const std::vector<std::vector<std::string>>& seen, int own) {
  const auto n_ranks = seen.size();
  bool all_the_same = true, none_shared = true;
  for (std::size_t a = 0; a < n_ranks; ++a)
    for (std::size_t b = 0; b < a; ++b) {
      all_the_same = all_the_same && seen[a] == seen[b];
      for (const auto& identity : seen[a])
        none_shared =
            none_shared && std::find(seen[b].begin(), seen[b].end(), identity) == seen[b].end();
    }
  if (none_shared) return listed;
  if (!all_the_same)
    throw InvalidInput(
        "the ranks of this host see different, but overlapping, devices; let each see all of them "
        "or only its own "
        "(srun --gpus-per-task=1, or CUDA_VISIBLE_DEVICES)");
  const std::size_t n = listed.size();
  if (n < n_ranks)
    throw InvalidInput(std::to_string(n_ranks) + " ranks on this host have " + std::to_string(n) +
                       " device(s) to share (" + listed.front().name() +
                       (n > 1 ? " … " + listed.back().name() : "") +
                       "); start at most one rank a device, or name more with --device");
  const auto i = static_cast<std::size_t>(own);
  return {listed.begin() + static_cast<std::ptrdiff_t>(i * n / n_ranks),
          listed.begin() + static_cast<std::ptrdiff_t>((i + 1) * n / n_ranks)};
}

std::vector<Device> devices_of_rank(const std::string& names, Ranks& ranks) {
  if (ranks.size() == 1) return devices_of(names);
  std::vector<Device> listed;
  if (names == "auto")
    for (Device& device : list_devices())
      if (device.backend == Backend::kCuda) listed.push_back(std::move(device));
  if (listed.empty()) listed = devices_of(names);
  // The ranks exchange this whatever the device, because ranks of different hosts may differ.
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  std::vector<double> mine{static_cast<double>(listed.front().backend == Backend::kCpu), 0.0};
  for (const char* c = host; *c != 0; ++c) mine.push_back(*c);
  mine[1] = static_cast<double>(mine.size());
  const std::size_t host_end = mine.size();
  const std::vector<double> packed_devices = packed(listed);
  mine.insert(mine.end(), packed_devices.begin(), packed_devices.end());
  std::vector<std::vector<std::string>> seen;
  for (const auto& other : ranks.gather(mine)) {
    if (other[0] != mine[0])
      throw InvalidInput(
          "some ranks found CUDA devices and others found none; choose --device cpu or cuda:N");
    if (other[1] == mine[1] &&
        std::equal(other.begin() + 2, other.begin() + static_cast<std::ptrdiff_t>(host_end),
                   mine.begin() + 2))
      seen.push_back(unpacked(other, host_end));
  }
  share_processors(ranks.ranks_on_host());
  if (listed.front().backend == Backend::kCpu) return listed;
  return share_of_rank(listed, seen, ranks.rank_on_host());
}

}  // namespace quasi
