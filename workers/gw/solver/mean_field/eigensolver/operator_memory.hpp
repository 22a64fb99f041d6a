#pragma once

#include <cstdint>
#include <string>

#include "workers/gw/solver/mean_field/eigensolver/dense_memory.hpp"

namespace quasi::gw {

/// Holds the sizes on which the memory of the iterative eigensolver depends. The eigensolver finds
/// the lowest eigenstates of H at a list of k-points. It computes products Hψ and never stores H
/// as a matrix.
struct OperatorStatesWork {
  std::int64_t order = 0;         ///< order of H: plane waves times components; 0: no such work
  std::int64_t n_spinor = 1;      ///< components of a state
  std::int64_t n_bands = 0;       ///< number of lowest states that are kept
  std::int64_t n_lists = 1;       ///< k-points times spins, whose states are in memory together
  std::int64_t n_projectors = 0;  ///< number of projectors on the plane waves of one component
  std::int64_t n_box = 0;         ///< points of the box of transforms
  bool real = false;              ///< true if no element of H has an imaginary part
};

/// Returns the bytes that the iterative eigensolver takes (docs/theory/gw.md 12). Its block has
/// n_bands states and the guard states. A GPU holds the block, H times the block and one more
/// block, and also the projectors and the boxes of a batch. The host holds the states and the parts
/// of H. If the processor does the work, the host holds the block and H times the block, too.
CallMemory memory_of_operator_states(const OperatorStatesWork& work, const Device& device);

/// Checks that a device and the host have the memory that the iterative eigensolver needs.
/// @param asked  key and value of the deck that ask for the states, e.g. "meanfield.bands = 130"
/// @param need   memory_of_operator_states()
/// @param room   memory of the device and of the host
/// @throws OutOfMemory with `asked`, the need, the room and remedies
void require_room_of_operator_states(const OperatorStatesWork& work, const std::string& asked,
                                     const CallMemory& need, const MemoryRoom& room);

/// Returns the sizes for a built-in crystal, without making its states. The order is 0 if the deck
/// has the dense solver.
OperatorStatesWork operator_work_of_crystal(const EmpiricalCrystal& crystal);

}  // namespace quasi::gw
