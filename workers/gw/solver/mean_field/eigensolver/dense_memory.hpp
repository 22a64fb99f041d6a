#pragma once

#include <cstdint>
#include <string>

#include "workers/gw/kernels/dense/eigen_memory.hpp"
#include "workers/gw/model/mean_field_options.hpp"

namespace quasi::gw {

/// Dense diagonalisations of H at a list of k-points, as far as their memory depends on them.
struct DenseStatesWork {
  std::int64_t n_pw = 0;     ///< plane waves of all components, the order of H
  std::int64_t n_bands = 0;  ///< lowest states that are kept
  std::int64_t n_lists = 1;  ///< k-points times spins, whose states are in memory together
  bool real = false;         ///< no element of H has an imaginary part
};

/// Memory that a job can take of one device and of the host, bytes; 0: not known.
struct MemoryRoom {
  std::int64_t device_bytes = 0, host_bytes = 0;
};

/// Returns the memory of dense diagonalisations. A device has one matrix at a time with the work
/// space that its library asks for; the eigenvectors replace the matrix. The host has the complex
/// matrix and the states. Where a CPU is the device, the host has the copy and the work space too.
CallMemory memory_of_dense_states(const DenseStatesWork& work, const Device& device);

/// Ends a job before its states are made, if a device or the host cannot hold what a dense
/// diagonalisation needs.
/// @param asked  key and value that ask for the states, e.g. "meanfield.bands = 130"
/// @param need   memory_of_dense_states()
/// @throws OutOfMemory with that value, the need, the room and remedies
void require_room_of_dense_states(const DenseStatesWork& work, const std::string& asked,
                                  const CallMemory& need, const MemoryRoom& room);

/// Returns the work for a built-in crystal, without making its states. It is empty (n_pw = 0) for
/// the solver that has no matrix.
DenseStatesWork dense_work_of_crystal(const EmpiricalCrystal& crystal);

}  // namespace quasi::gw
