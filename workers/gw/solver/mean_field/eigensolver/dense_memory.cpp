#include "workers/gw/solver/mean_field/eigensolver/dense_memory.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "workers/backend/error.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/mean_field/brillouin_zone.hpp"
#include "workers/gw/solver/mean_field/empirical_structure.hpp"

namespace quasi::gw {
namespace {

constexpr double kGib = 1073741824.0;

double gib(std::int64_t bytes) { return static_cast<double>(bytes) / kGib; }

}  // namespace

CallMemory memory_of_dense_states(const DenseStatesWork& work, const Device& device) {
  if (work.n_pw == 0) return {};
  CallMemory memory = memory_of_eigen_hermitian(device, work.n_pw, work.real);
  memory.host_bytes += 16 * work.n_pw * (work.n_pw + work.n_bands * work.n_lists);
  return memory;
}

void require_room_of_dense_states(const DenseStatesWork& work, const std::string& asked,
                                  const CallMemory& need, const MemoryRoom& room) {
  const bool on_device = room.device_bytes > 0 && need.device_bytes > room.device_bytes;
  if (!on_device && (room.host_bytes <= 0 || need.host_bytes <= room.host_bytes)) return;
  char text[600];
  if (on_device)
    std::snprintf(text, sizeof text,
                  "%s with meanfield.solver = \"dense\": the matrix of H of %lld plane waves, and "
                  "the work space that diagonalises it, need %.3g GiB, which one device must hold "
                  "(more devices and fewer bands do not help); there are %.3g GiB. ",
                  asked.c_str(), static_cast<long long>(work.n_pw), gib(need.device_bytes),
                  gib(room.device_bytes));
  else
    std::snprintf(text, sizeof text,
                  "%s with meanfield.solver = \"dense\": the matrix of H of %lld plane waves and "
                  "its states need %.3g GiB of host memory; the host has %.3g GiB to give "
                  "(available memory, or what its control group leaves). Ask for fewer bands. ",
                  asked.c_str(), static_cast<long long>(work.n_pw), gib(need.host_bytes),
                  gib(room.host_bytes));
  throw OutOfMemory(std::string(text) +
                    "Set meanfield.solver = \"operator\", which has no matrix and makes the "
                    "lowest states, with [pseudobands] for the others; or lower the cut-off of "
                    "the wavefunctions");
}

DenseStatesWork dense_work_of_crystal(const EmpiricalCrystal& crystal) {
  if (crystal.eigensolver.method != Eigensolver::kDense) return {};
  const Crystal made = empirical_crystal(crystal);
  const GSphere sphere = make_g_sphere(made.bdot, {}, crystal.wavefunction_cutoff_ry);
  const PotentialElements potential = empirical_potential(crystal);
  std::vector<Vec3> k;
  std::vector<double> weight;
  irreducible_points(crystal.k_grid, {}, made.symmetries, &k, &weight);
  const std::int64_t order = sphere.size() * crystal.n_spinor();
  return {.n_pw = order,
          .n_bands = std::min<std::int64_t>(crystal.bands + 1, order),
          .n_lists = static_cast<std::int64_t>(k.size()),
          .real = !crystal.couples_spins() &&
                  std::all_of(potential.begin(), potential.end(),
                              [](const auto& element) { return element.second.imag() == 0.0; })};
}

}  // namespace quasi::gw
