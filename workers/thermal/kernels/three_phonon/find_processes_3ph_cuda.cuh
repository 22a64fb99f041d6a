#pragma once

#include <cstdint>
#include <vector>

#include "workers/thermal/kernels/three_phonon/device_problem_3ph_cuda.cuh"

namespace quasi::thermal::cuda3ph {

/// Views of the lists of some consecutive rows, one list after the other.
/// See docs/theory/thermal.md 6 for the equations.
struct RowLists3 {
  std::int64_t first_row;  ///< the first row of a launch
  const std::int64_t*
      first_process;  ///< [n_rows + 1] where each row begins in the list of all rows
  std::int64_t base;  ///< the place of processes[0] in the list of all rows
  Process3* processes;

  __device__ std::int64_t begin(std::int64_t row) const { return first_process[row] - base; }
  __device__ std::int64_t end(std::int64_t row) const { return first_process[row + 1] - base; }
};

/// Offsets of the first process of each row in a list of all processes, on host and device.
struct ProcessOffsets3 {
  std::vector<std::int64_t> host;  ///< [n_rows + 1]
  cuda::DeviceBuffer<std::int64_t> device;

  ProcessOffsets3() = default;
  /// @param counts  [n_rows][2] absorption and emission
  explicit ProcessOffsets3(const std::vector<std::int64_t>& counts)
      : host(process_offsets(counts)), device(host, "offsets of processes") {}

  /// Processes of the rows first ≤ row < last.
  std::int64_t size(std::int64_t first, std::int64_t last) const {
    return host[last] - host[first];
  }
  /// Views of the lists of the rows from first_row on.
  /// @param processes  where the first of them begins
  RowLists3 lists(std::int64_t first_row, Process3* processes) const {
    return {first_row, device.data(), host[first_row], processes};
  }
};

/// Calls hit(process) for every process of mode0 with q'' = q + p, in a fixed order of branches and
/// channels. The tests are those of ProcessRules3::allowed, taken apart so that the data of a mode
/// are loaded once. With tetrahedra, a process has its δ for a weight.
/// @tparam kTetrahedra  whether the broadening is that of tetrahedra
/// @param zero  mode_data of mode0
template <bool kTetrahedra = false, typename Hit>
__device__ inline void for_each_process_at(const Tables3& t, const ModeData& zero,
                                           std::int64_t mode0, std::int64_t p, const Hit& hit) {
  const std::int64_t q2 = t.mesh.add(mode0 / t.nb, p, 1);
  const std::int64_t minus = t.mesh.minus(p);
  const ProcessRules3& rules = t.rules;
  for (int s2 = 0; s2 < t.nb; ++s2) {
    const ModeData two = mode_data(rules, q2 * t.nb + s2);
    if (two.omega >= ProcessRules3::kInactive) continue;
    for (int s1 = 0; s1 < t.nb; ++s1)
      for (int channel = 0; channel < 2; ++channel) {
        const std::int64_t m1 = (channel == 0 ? p : minus) * t.nb + s1;
        const ModeData one = mode_data(rules, m1);
        if (one.omega >= ProcessRules3::kInactive) continue;
        const Channel3 kind = channel == 0 ? Channel3::kAbsorption : Channel3::kEmission;
        Process3 process{static_cast<std::int32_t>(channel == 0 ? m1 : ~m1),
                         static_cast<std::int32_t>(q2 * t.nb + s2), 0.0};
        if constexpr (kTetrahedra) {
          process.weight_per_ps = t.tetrahedra.delta_ps(kind, zero.omega, m1, process.second);
          if (process.weight_per_ps > 0.0) hit(process);
        } else {
          const double mismatch = ProcessRules3::mismatch(kind, zero.omega, one.omega, two.omega);
          if (rules.in_window(mismatch, width_squared_3ph(rules.broadening, zero.spread, one.spread,
                                                          two.spread)))
            hit(process);
        }
      }
  }
}

/// Counts the processes of some rows on the device in use. @return [rows][2] absorption, emission
std::vector<std::int64_t> count_processes(const Tables3& tables,
                                          const std::vector<std::int64_t>& rows);

/// Writes the processes of n_rows rows to their lists, in rising order of p. The order, and so
/// every later sum, does not depend on how threads are scheduled. With tetrahedra, weights are δ.
void list_processes(const Tables3& tables, const RowLists3& lists, std::int64_t n_rows);

}  // namespace quasi::thermal::cuda3ph
