#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/input/job_file.hpp"
#include "quasi/v1/sweep.pb.h"

/// Begin here: client/input/sweeps reads the flags of sweeps, of sets of jobs, and of jobs that
/// wait for others.
namespace quasi::client {

/// The flags of a sweep.
struct SweepArguments {
  std::vector<std::string> axes;  ///< KEY=a,b,c | KEY=start:stop:count | KEY=log:start:stop:count
  std::string table;              ///< CSV file: keys in its first line, a point in each other one
  std::optional<unsigned> max_concurrent;
  std::optional<unsigned> stop_after_failures;
  std::vector<std::string> stop_when;  ///< FIGURE<VALUE or FIGURE<VALUE:JOBS, also <=, > and >=

  bool empty() const { return axes.empty() && table.empty(); }
};

/// The axis of one --sweep. A list is split at its semicolons, or at its commas if it has none. A
/// range includes both ends, and its values have 12 significant digits.
/// @throws Failure (kUsage) naming the flag, the text and the form
v1::SweepAxis axis_of(const std::string& text);

/// The axis of a table in CSV (RFC 4180), whose columns vary together.
/// @param name  of the file, for failures
/// @throws Failure (kInvalidInput) naming the line
v1::SweepAxis axis_of_table(const std::string& text, const std::string& name);

/// The sweep over the jobs that the flags describe: the axes in their order, then the table.
/// @throws Failure (kUsage, kInvalidInput) naming the flag, or the limit that it exceeds
v1::Sweep sweep_of(const SweepArguments& arguments, const v1::JobSpec& job);

/// Refuses a sweep that the server would refuse.
/// @param request  the template with its files, which are not hashed yet
/// @throws Failure (kInvalidInput) with the fields
void check_sweep_limits(const v1::Sweep& sweep, const JobRequest& request);

/// The jobs whose decks are checked before a submission: those along each axis from the first job
/// on, at most 8 of an axis.
std::vector<std::size_t> samples_of(const v1::Sweep& sweep);

/// "KEY=VALUE KEY=VALUE": the values of the keys of the axes in a job.
std::string point_text(const v1::Sweep& sweep, std::size_t index);

}  // namespace quasi::client
