#pragma once

#include <filesystem>
#include <optional>

#include "workers/gw/solver/calculation/convergence_study.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"

namespace quasi::gw {

/// Writes result.h5 (docs/reference/gw.md). @throws StorageError
void write_result(const std::filesystem::path& path, const Calculation& run,
                  const std::optional<ConvergenceStudy>& study);

/// Writes eqp0.dat and eqp1.dat in the format of BerkeleyGW; nothing without V_xc.
/// @throws StorageError
void write_energies(const std::filesystem::path& directory, const Calculation& run);

}  // namespace quasi::gw
