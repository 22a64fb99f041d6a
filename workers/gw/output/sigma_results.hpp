#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/io/hdf5.hpp"

namespace quasi::gw {

/// Adds Σ on a grid of energies, the full matrix and outer loops to the summary and to result.h5.
void add_sigma_summary(const Calculation& run, nlohmann::json& summary);
/// Writes these parts to result.h5.
void write_sigma_results(const Calculation& run, H5Writer& file);

/// Writes plain tables for plots, if there are such data: bands.dat (path, E_mf and E_qp of each
/// band) and spectra.dat (E, Re Σ, Im Σ, A of each multiplet).
void write_sigma_tables(const std::filesystem::path& directory, const Calculation& run);

}  // namespace quasi::gw
