#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "proto/wire/validate.hpp"

/// Begin here: proto/wire/sweeps makes the jobs of a sweep, and checks sweeps and dependencies.
/// Client and server make them by the same functions.
namespace quasi::wire {

/// Number of combinations of the points; `limits::kSweepJobs` + 1 stands for any larger number.
std::size_t jobs_in_sweep(const v1::Sweep& sweep);

/// The points of a job: one index for each axis. The last axis varies fastest.
std::vector<std::size_t> points_of_job(const v1::Sweep& sweep, std::size_t index);

/// The job of a combination, called NAME[i,j], with the settings of its points after those of the
/// template.
v1::JobSpec job_of_sweep(const v1::Sweep& sweep, std::size_t index);

/// Checks the template, the axes and the number of jobs.
void validate_sweep(const v1::Sweep& sweep, const std::string& path,
                    const ValidationOptions& options, Violations& violations);

}  // namespace quasi::wire
