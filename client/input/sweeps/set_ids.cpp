#include "client/input/sweeps/set_ids.hpp"

#include <algorithm>
#include <cctype>

#include "proto/wire/validate.hpp"

namespace quasi::client {
namespace {

constexpr std::size_t kShortestSetPrefix = 8;  // "s_" and 6 characters
constexpr int kJobsOfAPage = 1000;

/// Ids are written in capitals, but users may type them in either case.
std::string canonical_set(const std::string& typed) {
  std::string id = typed;
  for (std::size_t i = 0; i < id.size(); ++i)
    id[i] = static_cast<char>(i == 0 ? std::tolower(static_cast<unsigned char>(id[i]))
                                     : std::toupper(static_cast<unsigned char>(id[i])));
  return id;
}

}  // namespace

bool could_be_set(const std::string& word) {
  std::string id = canonical_set(word);
  if (id.size() < kShortestSetPrefix || id.size() > 28) return false;
  id.append(28 - id.size(), '0');
  return wire::is_id(id, 's');
}

std::optional<v1::JobSet> find_set(Session& session, const std::string& word) {
  if (!could_be_set(word)) return std::nullopt;
  v1::GetJobSetRequest request;
  request.set_job_set_id(canonical_set(word));
  try {
    return session.server.call(&Jobs::GetJobSet, request).job_set();
  } catch (const Failure& failure) {
    if (failure.status != ExitStatus::kNotFound) throw;
    return std::nullopt;
  }
}

std::optional<v1::JobSet> only_set(Session& session, const std::vector<std::string>& words) {
  if (words.size() != 1) return std::nullopt;
  if (words.front() != "last") return find_set(session, words.front());
  const std::vector<std::string> last = session.state.last();
  return last.size() == 1 ? find_set(session, last.front()) : std::nullopt;
}

std::vector<v1::Job> jobs_of_set(Session& session, const std::string& set_id) {
  v1::ListJobsRequest request;
  request.mutable_filter()->set_job_set_id(set_id);
  request.set_order(v1::ListJobsRequest::ORDER_CREATED_ASCENDING);
  request.set_page_size(kJobsOfAPage);
  std::vector<v1::Job> jobs;
  while (true) {
    v1::ListJobsResponse page = session.server.call(&Jobs::ListJobs, request);
    for (v1::Job& job : *page.mutable_jobs())
      if (wire::is_id(job.id(), 'j')) jobs.push_back(std::move(job));
    if (page.next_page_token().empty()) return jobs;
    request.set_page_token(page.next_page_token());
  }
}

std::string value_in(const v1::Job& job, const std::string& key) {
  std::string value;
  if (const v1::DeckWork* deck = wire::deck_of(job.spec()))
    for (const v1::Setting& setting : deck->settings())
      if (setting.key() == key) value = setting.value();
  return value;
}

std::vector<std::string> keys_of(const v1::JobSet& set) {
  std::vector<std::string> keys;
  for (const v1::SweepAxis& axis : set.axes())
    keys.insert(keys.end(), axis.keys().begin(), axis.keys().end());
  return keys;
}

}  // namespace quasi::client
