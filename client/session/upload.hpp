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
  bool sent = false;  ///< false: the server already had it
};

/// Hashes the local files of the jobs and adds them to their specs' inputs.
void hash_inputs(std::vector<JobRequest>& requests);

/// Sends the files that the server lacks. Each file is sent once even if several jobs use it.
/// Broken transfers are continued. Ctrl-C ends them, and a later submission continues them.
/// @return every distinct file
std::vector<UploadedFile> upload_inputs(Session& session, const std::vector<JobRequest>& requests);

}  // namespace quasi::client
