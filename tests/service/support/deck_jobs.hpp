#pragma once

#include <filesystem>
#include <string>

#include "tests/service/support/service_fixture.hpp"

namespace quasi::test {

/// Uploads `file` and names it among the inputs of `spec`.
void add_input(Service& service, v1::JobSpec* spec, const std::string& slot,
               const std::filesystem::path& file);

/// An artefact of a job, beside the service's own files.
std::filesystem::path fetch(Service& service, const v1::Job& job, const std::string& name);

/// Four phonons of silicon (Stillinger–Weber), checkpointed after every tile.
/// @param divisions  of each axis of the mesh
v1::JobSpec silicon_4ph(Service& service, const std::string& divisions,
                        const std::string& scalebroad);

/// Every dataset of two result.h5, bit by bit, wall times apart.
/// @param n_least  how many there must be
void expect_same_results(const std::filesystem::path& a, const std::filesystem::path& b,
                         int n_least);

}  // namespace quasi::test
