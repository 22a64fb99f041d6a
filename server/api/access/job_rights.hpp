#pragma once

#include <google/protobuf/repeated_field.h>

#include <string>

#include "quasi/v1/job_service.pb.h"
#include "server/access/principal.hpp"

namespace quasi::server {

/// Finds the first job with a priority above 0, unless the caller is an operator or admin: nobody
/// else may put jobs before those of others.
/// @return field and message, "jobs[2].priority: is 5, …", or "" if the caller may submit the jobs
std::string forbidden_priority(const google::protobuf::RepeatedPtrField<v1::JobSpec>& jobs,
                               const Caller& caller);

}  // namespace quasi::server
