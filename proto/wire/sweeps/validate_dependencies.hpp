#pragma once

#include <cstdint>
#include <string>

#include "proto/wire/validate.hpp"

/// Checks of the jobs that a job waits for.
namespace quasi::wire {

/// Checks an input that another job makes.
void check_source(const v1::Input& input, const std::string& field, Violations& violations);

/// Checks the dependencies of a job, each by itself.
void check_dependencies(const v1::JobSpec& spec, const std::string& path, Violations& violations);

/// Checks that a job refers only to earlier jobs of its call, so that there are no cycles.
/// @param place  of the job in the call
void check_order(const v1::JobSpec& spec, std::uint32_t place, const std::string& path,
                 Violations& violations);

}  // namespace quasi::wire
