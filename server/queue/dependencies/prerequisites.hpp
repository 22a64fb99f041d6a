#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/queue/store.hpp"

/// Begin here: server/queue/dependencies holds the rules on jobs that wait for other jobs. A job
/// waits for jobs that were submitted before it, so that there are no cycles.
namespace quasi::server {

/// The artefact that job `source` made for an input. Empty if it has none of this name, or if the
/// bytes of that are damaged.
std::optional<JobInput> made_input(Store& store, RowId source, const ArtifactInput& input);

/// The jobs for which the jobs of one submission wait. The methods are called for one job after the
/// other, in the order of the submission.
class Prerequisites {
 public:
  /// Finds the jobs that are named by uid.
  /// @param jobs  of the submission; they live longer than this object
  /// @throws Refused NOT_FOUND / JOB for one that the scope does not contain
  Prerequisites(Store& store, const Scope& scope, std::vector<NewJob>& jobs);

  /// Counts the jobs for which a job still waits, and adds the inputs that other jobs have made.
  /// Of earlier jobs of the submission, `taken_from` is known.
  /// @throws Refused FAILED_PRECONDITION / DEPENDENCY_FAILED if the job could never start
  void resolve(std::size_t index);

  /// Writes the dependencies of a job that was inserted.
  void insert(std::size_t index);

 private:
  /// The state of a job that another one names.
  struct Named {
    std::string uid;  ///< "" for a job of the submission
    JobState state = JobState::kQueued;
    RowId maker = 0;  ///< job with its artefacts
  };
  Named look_up(const JobReference& job) const;
  RowId id_of(const JobReference& job) const;

  Store& store_;
  std::vector<NewJob>& jobs_;
  std::map<std::string, JobRow> known_;  ///< by uid
  /// For each job of the submission, the jobs it waits for, each once.
  std::vector<std::map<JobReference, NewDependency>> awaited_;
};

}  // namespace quasi::server
