#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "workers/gw/solver/mean_field/problem.hpp"
#include "workers/gw/solver/perturbation/displacement_elements.hpp"
#include "workers/io/hdf5.hpp"

namespace quasi::gw {

/// Writes the group /perturbations of result.h5, eV/Bohr. @throws StorageError
void write_displacements(const DisplacementElements& found, const MeanField& field, H5Writer& file);

/// Returns the norms √Σ|g|² over all bras and kets of each displacement and k, which do not depend
/// on the basis of a multiplet, and the acoustic sums; eV/Bohr.
nlohmann::json summary_of_displacements(const DisplacementElements& found, const MeanField& field);

/// Formats the largest deviation of dSigma from finite displacements among the rows of a summary.
/// The text is empty if the job has no such check.
std::string deviations_of(const nlohmann::json& summary);

/// Formats the table of that summary.
std::string table_of_displacements(const nlohmann::json& summary);

}  // namespace quasi::gw
