#pragma once

#include <string>
#include <vector>

#include "client/input/job_file.hpp"
#include "client/session/session.hpp"

namespace quasi::client {

struct UploadedFile {
  std::string name;  ///< slot
  std::string digest;
  std::uint64_t size_bytes = 0;
  bool sent = false;  ///< false: the server had it
};

/// Hashes the local files of the jobs and adds them to their specs' inputs.
void hash_inputs(std::vector<JobRequest>& requests);

/// Sends what the server lacks, each file once however many jobs name it. Broken transfers are
/// continued; Ctrl-C ends them, and a later submission continues where they stood.
/// @return every distinct file
std::vector<UploadedFile> upload_inputs(Session& session, const std::vector<JobRequest>& requests);

}  // namespace quasi::client
