#pragma once

#include <filesystem>
#include <optional>

#include "workers/gw/solver/calculation/convergence_study.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/io/result_root.hpp"

namespace quasi::gw {

/// Begin here: writes result.h5 (docs/reference/gw.md). sigma_results.hpp writes the parts of Σ,
/// summary.hpp the summary. @throws StorageError
void write_result(const std::filesystem::path& path, const Calculation& run,
                  const std::optional<ConvergenceStudy>& study, const InputRecord& inputs);

/// Writes errors.dat. Writes eqp0.dat and eqp1.dat in the format of BerkeleyGW too, unless V_xc is
/// undefined.
/// @throws StorageError
void write_energies(const std::filesystem::path& directory, const Calculation& run);

}  // namespace quasi::gw
