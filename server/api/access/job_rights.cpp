#include "server/api/access/job_rights.hpp"

namespace quasi::server {

std::string forbidden_priority(const google::protobuf::RepeatedPtrField<v1::JobSpec>& jobs,
                               const Caller& caller) {
  if (caller.role >= Role::kOperator) return "";
  for (int i = 0; i < jobs.size(); ++i)
    if (jobs[i].priority() > 0)
      return "jobs[" + std::to_string(i) + "].priority: is " + std::to_string(jobs[i].priority()) +
             ", and the limit of the role " + std::string(word_of(caller.role)) +
             " is 0; choose a value of -100...0, or ask an operator to submit the job";
  return "";
}

}  // namespace quasi::server
