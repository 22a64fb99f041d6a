#pragma once

#include <filesystem>
#include <string>

#include "tests/service/support/service_fixture.hpp"

namespace quasi::test {

/// Uploads `file` and adds it to the inputs of `spec`.
void add_input(Service& service, v1::JobSpec* spec, const std::string& slot,
               const std::filesystem::path& file);

/// Fetches an artefact of a job into a folder beside the service's own files.
std::filesystem::path fetch(Service& service, const v1::Job& job, const std::string& name);

/// A job for four-phonon scattering in silicon (Stillinger–Weber) with a checkpoint after every
/// tile.
/// @param divisions  number of mesh divisions along each axis
v1::JobSpec silicon_4ph(Service& service, const std::string& divisions,
                        const std::string& scalebroad);

/// Compares every dataset of two result.h5 bit by bit, except wall times.
/// @param n_least  least number of datasets
void expect_same_results(const std::filesystem::path& a, const std::filesystem::path& b,
                         int n_least);

}  // namespace quasi::test
