#include "proto/wire/sweeps/validate_dependencies.hpp"

#include <set>
#include <utility>

#include "proto/wire/checks.hpp"
#include "proto/wire/limits.hpp"

namespace quasi::wire {
namespace {

using checks::at;
using checks::shown;

/// Checks that a reference names a job, by its id if it has one.
template <class Reference>
void check_reference(const Reference& reference, const std::string& field, Violations& violations) {
  if (reference.has_job_id())
    checks::id(reference.job_id(), 'j', at(field, "job_id"), violations);
  else if (!reference.has_index())
    violations.add(at(field, "job"), "must be a job's id, or an index among the jobs of this call");
}

template <class Reference>
void check_place(const Reference& reference, std::uint32_t place, const std::string& field,
                 Violations& violations) {
  if (reference.has_index() && reference.index() >= place)
    violations.add(at(field, "index"), "must name a job before this one, which is job " +
                                           std::to_string(place) + " of the call, got " +
                                           std::to_string(reference.index()) +
                                           "; order the jobs so that each waits for earlier ones");
}

}  // namespace

void check_source(const v1::Input& input, const std::string& field, Violations& violations) {
  if (!input.digest().empty() || input.size_bytes() != 0)
    violations.add(at(field, "digest"),
                   "must be empty, as size_bytes, for a file that another job makes, got " +
                       shown(input.digest()));
  check_reference(input.from(), at(field, "from"), violations);
  if (!is_relative_path(input.from().artifact(), limits::kArtifactNameBytes))
    violations.add(
        at(field, "from.artifact"),
        "must be the name of an artefact, e.g. result.h5, got " + shown(input.from().artifact()));
}

void check_dependencies(const v1::JobSpec& spec, const std::string& path, Violations& violations) {
  checks::count(static_cast<std::uint64_t>(spec.depends_on_size()), limits::kDependencies,
                "entries", at(path, "depends_on"), violations);
  std::set<std::pair<std::string, std::uint32_t>> named;
  for (int i = 0; i < spec.depends_on_size(); ++i) {
    const v1::Dependency& dependency = spec.depends_on(i);
    const std::string field = at(path, "depends_on", i);
    check_reference(dependency, field, violations);
    if (!named.insert({dependency.job_id(), dependency.index()}).second)
      violations.add(field, "names a job that an earlier entry names");
    if (!v1::Dependency::Condition_IsValid(dependency.condition()))
      violations.add(at(field, "condition"),
                     "must be SUCCESS or FINISHED, got number " +
                         std::to_string(static_cast<int>(dependency.condition())));
  }
}

void check_order(const v1::JobSpec& spec, std::uint32_t place, const std::string& path,
                 Violations& violations) {
  for (int i = 0; i < spec.depends_on_size(); ++i)
    check_place(spec.depends_on(i), place, at(path, "depends_on", i), violations);
  for (int i = 0; i < spec.inputs_size(); ++i)
    check_place(spec.inputs(i).from(), place, at(at(path, "inputs", i), "from"), violations);
}

}  // namespace quasi::wire
