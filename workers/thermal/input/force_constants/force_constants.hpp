#pragma once

#include <filesystem>

#include "workers/thermal/input/control/control.hpp"
#include "workers/thermal/model/crystal.hpp"
#include "workers/thermal/model/force_constants.hpp"

/// Begin here: workers/thermal/input/force_constants reads force constants from text files.
/// text_scanner.hpp reads their numbers and knows the line of each.
namespace quasi::thermal {

/// Reads FORCE_CONSTANTS_2ND or, with control.espresso, espresso.ifc2 (with its acoustic sum rule).
/// @throws InvalidInput naming file and line: missing, truncated, wrong supercell, no numbers.
SecondOrder read_second_order(const std::filesystem::path& directory, const Control& control,
                              const Crystal& crystal);
SecondOrder read_force_constants_2nd(const std::filesystem::path& file, const Control& control,
                                     const Crystal& crystal);
SecondOrder read_espresso_ifc2(const std::filesystem::path& file, const Control& control,
                               const Crystal& crystal);

/// Checks the constants of a supercell, measures their acoustic sum and imposes the sum rule with
/// control.acoustic_sum_rule. @throws InvalidInput for constants of another supercell
void finish_second_order(SecondOrder& constants, const Control& control);

/// Reads FORCE_CONSTANTS_3RD or FORCE_CONSTANTS_4TH (docs/theory/thermal.md 1.3, 1.4). Lattice
/// vectors are solved for integers and refused when the residue is above 0.05. Blank lines may be
/// missing.
/// @throws InvalidInput naming file, line, block and remedy.
SparseForceConstants read_sparse_force_constants(const std::filesystem::path& file, int order,
                                                 const Crystal& crystal);

/// Checks the acoustic sum rule of sparse constants.
/// @throws InvalidInput with the size of the violation when it is above `tolerance`, unless
///         control.allow_broken_sum_rule
void check_sum_rule(const SparseForceConstants& constants, const std::string& file,
                    const Control& control, double tolerance = 1e-3);

}  // namespace quasi::thermal
