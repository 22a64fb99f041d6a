#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/input/job_file.hpp"
#include "client/input/sweeps/sweep_axes.hpp"
#include "client/session/session.hpp"

namespace quasi::client {

/// Begin here: client/commands has one file for each command or group of commands, which main.cpp
/// calls. This is the description of jobs on the command line, which `submit` and `validate` share.
struct JobArguments {
  std::vector<std::string> words;     ///< FILE…, or KIND DECK…
  std::vector<std::string> settings;  ///< key=value, for the decks
  std::vector<std::string> inputs;    ///< slot=path
  std::string name;
  std::vector<std::string> labels;  ///< key=value
  std::optional<int> priority;
  std::string visibility;  ///< private or tenant; empty: as the job says
  bool no_cache = false;   ///< neither takes a result nor offers its own
  bool refresh = false;    ///< computes a result anew
  std::string max_runtime;
  std::string device;  ///< auto, cpu, cuda
  std::optional<unsigned> gpus;
  std::optional<unsigned> ranks;
  std::string pool;  ///< of workers; empty: as the job says
  std::optional<unsigned> max_attempts;
  std::vector<std::string> exports;
  SweepArguments sweep;
  std::vector<std::string> after;      ///< jobs whose success the jobs wait for
  std::vector<std::string> after_any;  ///< jobs whose end they wait for
  std::vector<std::string> takes;      ///< SLOT=JOB:FILE, files that other jobs make
};

struct SubmitOptions {
  JobArguments job;
  bool watch = false;
  bool wait = false;
  bool dry_run = false;
  bool no_check = false;
  bool resume = false;
  std::string forget;  ///< request id of a pending submission to drop
};

/// Builds the requested jobs and applies the flags.
/// @throws Failure naming file or flag.
std::vector<JobRequest> build_jobs(const JobArguments& arguments);

/// Applies the flags of the command line to one job. `name` replaces the job's name unless empty.
/// @throws Failure naming the flag.
void apply_flags(const JobArguments& arguments, JobRequest& request, const std::string& name);

ExitStatus submit(Session& session, const SubmitOptions& options);

/// `quasi resubmit` sends jobs again, with the inputs that the server holds. The words of
/// `options.job` are jobs; its flags change the copies.
ExitStatus resubmit(Session& session, const SubmitOptions& options);

}  // namespace quasi::client
