#include "client/input/job_ids.hpp"

#include <algorithm>
#include <iostream>
#include <map>
#include <set>

#include "client/input/sweeps/set_ids.hpp"
#include "proto/wire/validate.hpp"

namespace quasi::client {
namespace {

constexpr std::size_t kFullLength = 28;
constexpr std::size_t kShortestPrefix = 8;  // "j_" and 6 characters
constexpr int kPage = 1000;

bool is_base32(char c) {
  return (c >= '0' && c <= '9') ||
         (c >= 'A' && c <= 'Z' && c != 'I' && c != 'L' && c != 'O' && c != 'U');
}

/// Ids are written in capitals, but users may type them in either case.
std::string canonical(const std::string& typed) {
  std::string id = typed;
  for (std::size_t i = 0; i < id.size(); ++i)
    id[i] = static_cast<char>(i == 0 ? std::tolower(static_cast<unsigned char>(id[i]))
                                     : std::toupper(static_cast<unsigned char>(id[i])));
  return id;
}

bool could_be_id(const std::string& id) {
  return id.starts_with("j_") && id.size() <= kFullLength &&
         std::all_of(id.begin() + 2, id.end(), is_base32);
}

/// Resolves the name of one job. A name of several jobs is refused, because `cancel` must not
/// guess.
std::string id_of_name(Session& session, const std::string& name) {
  v1::ListJobsRequest request;
  request.mutable_filter()->set_name_prefix(name);
  request.set_page_size(kPage);
  std::vector<std::string> ids;
  while (true) {
    const v1::ListJobsResponse page = session.server.call(&Jobs::ListJobs, request);
    for (const v1::Job& job : page.jobs())
      if (job.spec().name() == name && wire::is_id(job.id(), 'j')) ids.push_back(job.id());
    if (page.next_page_token().empty()) break;
    request.set_page_token(page.next_page_token());
  }
  if (ids.empty())
    throw Failure(
        ExitStatus::kNotFound, "'" + name + "' is neither an id nor the name of a job",
        "ids look like j_01J9QK3V8N; 'last' is the newest submission, see also: quasi list");
  if (ids.size() > 1)
    throw Failure(ExitStatus::kUsage,
                  std::to_string(ids.size()) + " jobs have the name '" + name +
                      "'; the newest is " + ids.front(),
                  "name one by its id: quasi list --name " + name);
  return ids.front();
}

std::vector<std::string> read_standard_input() {
  std::vector<std::string> words;
  for (std::string word; std::cin >> word;) words.push_back(word);
  if (words.empty())
    throw Failure(ExitStatus::kUsage, "'@' reads ids from standard input, which was empty",
                  "pipe some in, e.g.: quasi list --state failed -o name | quasi show @");
  return words;
}

}  // namespace

std::vector<std::string> resolve_job_ids(Session& session, const std::vector<std::string>& typed) {
  std::vector<std::string> words;
  for (const std::string& word : typed) {
    if (word == "@") {
      for (const std::string& piped : read_standard_input()) words.push_back(piped);
    } else if (word == "last") {
      const std::vector<std::string> last = session.state.last();
      if (last.empty())
        throw Failure(ExitStatus::kNotFound, "'last': no job was submitted from this machine yet",
                      "see every job: quasi list");
      words.insert(words.end(), last.begin(), last.end());
    } else {
      words.push_back(word);
    }
  }

  std::vector<std::string> ids;
  std::set<std::string> taken;
  for (const std::string& word : words) {
    if (const auto set = find_set(session, word)) {
      for (const v1::Job& job : jobs_of_set(session, set->id()))
        if (taken.insert(job.id()).second) ids.push_back(job.id());
      continue;
    }
    std::string id = canonical(word);
    if (!could_be_id(id)) {
      id = id_of_name(session, word);
      if (taken.insert(id).second) ids.push_back(id);
      continue;
    }
    if (id.size() < kShortestPrefix)
      throw Failure(ExitStatus::kUsage,
                    "'" + word + "' is too short; at least 6 characters after 'j_' are needed",
                    "see your jobs: quasi list");
    if (id.size() < kFullLength) {
      v1::GetJobRequest request;
      request.set_job_id(id);
      id = session.server.call(&Jobs::GetJob, request).job().id();
      // The id becomes the name of a folder, so an id from an untrusted server must be checked.
      if (!wire::is_id(id, 'j'))
        throw Failure(ExitStatus::kDataIntegrity,
                      "the server answers with '" + id + "', which is not a job id",
                      "check the address of the server: quasi --print-config");
    }
    if (taken.insert(id).second) ids.push_back(id);
  }
  return ids;
}

std::string resolve_job_id(Session& session, const std::string& typed) {
  const std::vector<std::string> ids = resolve_job_ids(session, {typed});
  if (ids.size() > 1)
    throw Failure(ExitStatus::kUsage,
                  "'" + typed + "' stands for " + std::to_string(ids.size()) +
                      " jobs; this command takes one",
                  "name one of them: " + ids[0] + " …");
  return ids.front();
}

}  // namespace quasi::client
