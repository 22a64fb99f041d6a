#pragma once

#include <filesystem>
#include <string>

#include "workers/thermal/model/force_constants.hpp"
#include "workers/thermal/solver/displacements/finite_differences.hpp"

namespace quasi::thermal {

/// Writes the cells of a plan as frames of an extended XYZ file, in the order of the plan.
/// @throws StorageError
void write_displaced_cells(const std::filesystem::path& file, const DisplacementPlan& plan);

/// Writes the options of a plan. The primitive cell lies beside the file as POSCAR.
/// @throws StorageError
void write_plan(const std::filesystem::path& file, const DisplacementOptions& options);

/// Writes FORCE_CONSTANTS_2ND: every ordered pair of the supercell, eV/Å². @throws StorageError
void write_second_order(const std::filesystem::path& file, const DisplacementPlan& plan,
                        const ClusterConstants& constants);

/// Writes FORCE_CONSTANTS_3RD or FORCE_CONSTANTS_4TH (docs/theory/thermal.md 1.3, 1.4).
/// @param lattice_angstrom  of the primitive cell; row i is a_i
/// @throws StorageError
void write_sparse_constants(const std::filesystem::path& file, const Mat3& lattice_angstrom,
                            const SparseForceConstants& constants);

/// Writes text to a file. @throws StorageError
void write_text(const std::filesystem::path& file, const std::string& text);

}  // namespace quasi::thermal
