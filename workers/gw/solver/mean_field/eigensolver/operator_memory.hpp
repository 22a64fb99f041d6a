#pragma once

#include <cstdint>
#include <string>

#include "workers/gw/solver/mean_field/eigensolver/dense_memory.hpp"

namespace quasi::gw {

/// Lowest states of H as an operator at a list of k-points, as far as their memory depends on them.
struct OperatorStatesWork {
  std::int64_t order = 0;         ///< of H, plane waves times components; 0: there is no such work
  std::int64_t n_spinor = 1;      ///< components of a state
  std::int64_t n_bands = 0;       ///< lowest states that are kept
  std::int64_t n_lists = 1;       ///< k-points times spins, whose states are in memory together
  std::int64_t n_projectors = 0;  ///< on the plane waves of one component
  std::int64_t n_box = 0;         ///< points of the box of transforms
  bool real = false;              ///< no element of H has an imaginary part
};

/// Returns the memory of the iterative eigensolver (docs/theory/gw.md 12). The block has n_bands
/// and the guard states. A device holds it with H times it and one more block, the projectors and
/// the boxes of a batch. The host holds the states and the parts of H. Where a CPU is the device,
/// or where H is left to the processor, the host holds the block and H times it too.
CallMemory memory_of_operator_states(const OperatorStatesWork& work, const Device& device);

/// Ends a job before its states are made, if a device or the host cannot hold what the iterative
/// eigensolver needs.
/// @param asked  key and value that ask for the states, e.g. "meanfield.bands = 130"
/// @param need   memory_of_operator_states()
/// @throws OutOfMemory with that value, the need, the room and remedies
void require_room_of_operator_states(const OperatorStatesWork& work, const std::string& asked,
                                     const CallMemory& need, const MemoryRoom& room);

/// Returns the work for a built-in crystal, without making its states. It is empty (order = 0) for
/// the dense solver.
OperatorStatesWork operator_work_of_crystal(const EmpiricalCrystal& crystal);

}  // namespace quasi::gw
