#include "workers/gw/solver/mean_field/eigensolver/operator_memory.hpp"

#include <omp.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "workers/backend/error.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/mean_field/brillouin_zone.hpp"
#include "workers/gw/solver/mean_field/eigensolver/lowest_states.hpp"
#include "workers/gw/solver/mean_field/eigensolver/operator_states.hpp"
#include "workers/gw/solver/mean_field/empirical_structure.hpp"

namespace quasi::gw {
namespace {

double gib(std::int64_t bytes) { return static_cast<double>(bytes) / 1073741824.0; }

}  // namespace

CallMemory memory_of_operator_states(const OperatorStatesWork& work, const Device& device) {
  if (work.order == 0) return {};
  constexpr std::int64_t kBatchOfThread = 8, kBatchOfDevice = 64,
                         kBoxes_bytes = std::int64_t{1} << 29;
  const std::int64_t value = work.real ? 8 : 16,
                     states = std::min(work.order, work.n_bands + guard_states(work.n_bands)),
                     block = value * work.order * states, small = value * states * states,
                     projectors = 32 * work.n_projectors * (work.order / work.n_spinor);
  CallMemory memory;
  memory.host_bytes = 16 * work.order * work.n_bands * work.n_lists + projectors + 24 * work.n_box;
  if (device.backend == Backend::kCpu || work.order < kLeastOrderOnGpu) {
    memory.host_bytes +=
        2 * block + 3 * small + omp_get_max_threads() * 3 * kBatchOfThread * 16 * work.order;
    return memory;
  }
  const std::int64_t of_box = 16 * work.n_box * work.n_spinor;
  // The transforms of cuFFT have a work space as large as their boxes.
  memory.device_bytes = 3 * block + 3 * small + projectors + 3 * kBatchOfDevice * 16 * work.order +
                        2 * std::max(of_box, std::min(kBoxes_bytes, kBatchOfDevice * of_box));
  memory.host_bytes += block;  // The host holds a copy of the block while it comes from the device.
  return memory;
}

void require_room_of_operator_states(const OperatorStatesWork& work, const std::string& asked,
                                     const CallMemory& need, const MemoryRoom& room) {
  const bool on_device = room.device_bytes > 0 && need.device_bytes > room.device_bytes;
  if (!on_device && (room.host_bytes <= 0 || need.host_bytes <= room.host_bytes)) return;
  char text[400];
  std::snprintf(text, sizeof text,
                "%s with meanfield.solver = \"operator\": the states of %lld coefficients and the "
                "block of the eigensolver need %.3g GiB of %s memory; there are %.3g GiB. ",
                asked.c_str(), static_cast<long long>(work.order),
                gib(on_device ? need.device_bytes : need.host_bytes), on_device ? "device" : "host",
                gib(on_device ? room.device_bytes : room.host_bytes));
  throw OutOfMemory(std::string(text) +
                    "Ask for fewer bands, with [pseudobands] for the others, or lower the cut-off "
                    "of the wavefunctions");
}

OperatorStatesWork operator_work_of_crystal(const EmpiricalCrystal& crystal) {
  if (crystal.eigensolver.method != Eigensolver::kOperator) return {};
  const Crystal made = empirical_crystal(crystal);
  const GSphere sphere = make_g_sphere(made.bdot, {}, crystal.wavefunction_cutoff_ry);
  const PotentialElements potential = empirical_potential(crystal);
  const HamiltonianParts parts = local_parts(made, {}, sphere.g, potential);
  std::vector<Vec3> k;
  std::vector<double> weight;
  irreducible_points(crystal.k_grid, {}, made.symmetries, &k, &weight);
  const std::int64_t order = sphere.size() * crystal.n_spinor();
  return {
      .order = order,
      .n_spinor = crystal.n_spinor(),
      .n_bands = std::min<std::int64_t>(crystal.bands + 1, order),
      .n_lists = static_cast<std::int64_t>(k.size()),
      .n_projectors = crystal.couples_spins() ? spin_orbit_term(crystal, made).n_projectors() : 0,
      .n_box = std::int64_t{1} * parts.box[0] * parts.box[1] * parts.box[2],
      .real = !crystal.couples_spins() &&
              std::all_of(potential.begin(), potential.end(),
                          [](const auto& element) { return element.second.imag() == 0.0; })};
}

}  // namespace quasi::gw
